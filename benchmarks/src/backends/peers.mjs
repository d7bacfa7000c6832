// The peers are a project of their own, outside the workspaces: `npm ci` of the repository does not bring them. The first
// benchmark that needs one installs all of them from their lockfile.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { run } from '../../../scripts/lib/run.mjs';

const folder = join(import.meta.dirname, '..', '..', 'peers');

/** Imports a file of a peer, as `package/path`. */
export function peer(path) {
  return import(pathToFileURL(join(folder, 'node_modules', path)).href);
}

/** Whether any of these contenders is a peer; all of them where they are left out. */
export function hasPeers(contenders) {
  return contenders?.some((name) => name !== 'raw' && !name.startsWith('guard')) ?? true;
}

/** Installs what is missing; throws where that failed. */
export async function installPeers() {
  const { dependencies } = readManifest();
  const missing = Object.entries(dependencies).filter(([name, version]) => versionOf(name) !== version);
  if (missing.length === 0) return;
  console.log(`npm ci in benchmarks/peers (${missing.map(([name]) => name).join(', ')})`);
  const { code } = await run('npm', ['ci', '--strict-allow-scripts'], { cwd: folder });
  if (code !== 0) throw new Error('the peers could not be installed');
}

/** The versions that are compared. */
export function peerVersions() {
  return readManifest().dependencies;
}

/** The program of the Node that some peers need: the package `node`. */
export function peerNode() {
  return join(folder, 'node_modules', 'node', 'bin', 'node');
}

function readManifest() {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

function versionOf(name) {
  const manifest = join(folder, 'node_modules', name, 'package.json');
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined;
}
