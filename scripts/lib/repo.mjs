// Where things are in this repository.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atLeastOne } from './shown.mjs';

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Absolute folders of the published packages, sorted by name. */
export function packageFolders() {
  const packages = join(root, 'packages');
  const folders = readdirSync(packages)
    .sort()
    .map((name) => join(packages, name))
    .filter((folder) => existsSync(join(folder, 'package.json')));
  return atLeastOne(`package in ${packages}`, folders);
}

export function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
