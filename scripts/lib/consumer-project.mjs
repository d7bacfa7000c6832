// A new project that has the packed packages, and the other libraries in the versions that this repository tests.
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMPILERS } from './consumer-compilers.mjs';
import { testedVersions } from './peers.mjs';
import { packageFolders, readJson, root } from './repo.mjs';
import { run } from './run.mjs';
import { atLeastOne } from './shown.mjs';

/** It is tested in projects of its own, with each version of Nest: `nest-consumers.mjs`. */
const IN_PROJECTS_OF_ITS_OWN = '@guard/nestjs';
/** A peer that no application here installs: it is loaded only for containers. */
const NOT_INSTALLED = ['testcontainers'];

/** `{ folder, specifiers }`: where it is, and every subpath that can be imported there; null where that failed. */
export async function makeConsumer() {
  const folder = mkdtempSync(join(tmpdir(), 'guard-consumer-'));
  const manifests = packageFolders()
    .map((path) => ({ path, ...readJson(join(path, 'package.json')) }))
    .filter((manifest) => manifest.private !== true);
  atLeastOne('package that is published', used(manifests));
  if (await fill(folder, manifests)) return { folder, specifiers: used(manifests).flatMap(specifiersOf) };
  rmSync(folder, { recursive: true, force: true });
  return null;
}

async function fill(folder, manifests) {
  const pack = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder];
  if ((await run('npm', [...pack, ...manifests.map(({ path }) => path)], { capture: true })).code !== 0)
    return false;
  const packed = readdirSync(folder).map((file) => `./${file}`);
  if (packed.length !== manifests.length) throw new Error(`packed ${packed.join(', ') || 'nothing'}`);
  const tarballs = packed.filter((file) => !file.startsWith('./guard-nestjs-'));
  const specifiers = used(manifests).flatMap(specifiersOf);
  writeFileSync(join(folder, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n');
  const quiet = ['--silent', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
  const install = [
    'install',
    ...quiet,
    ...tarballs,
    '@types/node@20',
    ...peersOf(used(manifests)),
    ...COMPILERS,
  ];
  if ((await run('npm', install, { cwd: folder })).code !== 0) return false;
  // Its binding is built once, in this repository.
  symlinkSync(join(root, 'node_modules', 'better-sqlite3'), join(folder, 'node_modules', 'better-sqlite3'));
  const applications = join(folder, 'applications');
  const consumers = join(root, 'test', 'consumers');
  for (const name of readdirSync(consumers).filter((name) => !name.startsWith('nest')))
    cpSync(join(consumers, name), join(applications, name), { recursive: true });
  writeFileSync(join(applications, 'types', 'every-export.ts'), importsOf(specifiers));
  inBothFormats(join(applications, 'types'));
  inBothFormats(join(applications, 'decorators'));
  return true;
}

function used(manifests) {
  return manifests.filter(({ name }) => name !== IN_PROJECTS_OF_ITS_OWN);
}

/** The subpaths of a package that an application can import. */
function specifiersOf({ name, exports }) {
  return Object.keys(exports)
    .filter((subpath) => !subpath.endsWith('.json'))
    .map((subpath) => `${name}${subpath.slice(1)}`);
}

/** Each peer in every major version that is tested here, under the name that it has here. */
function peersOf(manifests) {
  const peers = new Set(manifests.flatMap(({ peerDependencies = {} }) => Object.keys(peerDependencies)));
  return testedVersions()
    .filter(({ name }) => peers.has(name) && !NOT_INSTALLED.includes(name))
    .map(({ alias, name, version }) => `${alias}@${alias === name ? '' : `npm:${name}@`}${version}`);
}

function importsOf(specifiers) {
  return specifiers
    .map(
      (specifier, index) =>
        `import * as m${index} from '${specifier}';\nexport type M${index} = keyof typeof m${index};\n`,
    )
    .join('');
}

/** A compiler makes CommonJS of `.cts` and ESM of `.mts`, and looks for types accordingly. */
function inBothFormats(folder) {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.ts'))) {
    for (const kind of ['.cts', '.mts'])
      cpSync(join(folder, file), join(folder, file.replace(/\.ts$/, kind)));
    rmSync(join(folder, file));
  }
}
