// The versions of other libraries that this repository tests its packages with: the root's devDependencies, where an
// alias (`ioredis6`: `npm:ioredis@^6`) stands for one more major version of the library it names.
import { join } from 'node:path';
import { readJson, root } from './repo.mjs';

/** `[{ alias, name, version }]`: each installed version of each library. */
export function testedVersions() {
  const { devDependencies } = readJson(join(root, 'package.json'));
  return Object.entries(devDependencies).map(([alias, wanted]) => {
    const { name, version } = readJson(join(root, 'node_modules', alias, 'package.json'));
    return { alias, name: wanted.startsWith('npm:') ? name : alias, version };
  });
}
