import { dirname } from 'node:path';
import { filesUnder, manifest, type Manifest } from './support/source.js';

const page = filesUnder('docs', 'dependencies.md').find(({ path }) => path === 'docs/dependencies.md');
const rows = [...(page?.text ?? '').matchAll(/^\| `([^`]+)`\s*\|(.*)$/gm)];
const explained = rows.map((row) => row[1]);

/** Projects of their own, which have a section of that page. */
const APART = ['benchmarks/peers', 'test/nodes'];

describe('dependencies', () => {
  it('are looked for wherever npm installs something', () => {
    const looked = ['.', 'benchmarks', 'packages/core', 'examples/cron-cluster', 'test/consumers/nest12-esm'];
    expect(folders()).toEqual(expect.arrayContaining(looked));
    for (const folder of APART) expect(page?.text).toContain(`\`${folder}\``);
  });

  it('are each explained in docs/dependencies.md', () => {
    const missing = [...dependencies()].filter(([name]) => !explained.includes(name));
    expect(
      missing.map(([name, folder]) => `${name} of ${folder} has no row in docs/dependencies.md`),
    ).toEqual([]);
  });

  it('are explained only while they are there', () => {
    const names = [...dependencies().keys()];
    expect(explained.filter((name) => !names.includes(name ?? ''))).toEqual([]);
  });

  it('are found in every list of a manifest', () => {
    const fields = {
      dependencies: { a: '1', '@guard/core': '1' },
      devDependencies: { b: '1' },
      peerDependencies: { c: '1' },
      optionalDependencies: { d: '1' },
      bundleDependencies: ['e'],
    };
    expect(namesIn(fields)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('have a reason in their row', () => {
    expect(rows.filter((row) => row[2]?.split('|').some((cell) => cell.trim().length > 20) !== true)).toEqual(
      [],
    );
  });
});

/** The names in every list by which npm installs something. */
function namesIn(fields: Partial<Manifest>): string[] {
  const lists = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];
  const names = lists.flatMap((list) => Object.keys(fields[list] ?? {}));
  const bundled = (fields['bundleDependencies'] ?? fields['bundledDependencies'] ?? []) as string[];
  return [...names, ...bundled].filter((name) => !name.startsWith('@guard/'));
}

/** Every dependency from outside this repository, with the first folder that names it. */
function dependencies(): Map<string, string> {
  const found = new Map<string, string>();
  for (const folder of folders()) {
    for (const name of namesIn(manifest(folder))) if (!found.has(name)) found.set(name, folder);
  }
  return found;
}

/** Every folder with a manifest. */
function folders(): string[] {
  const found = ['packages', 'examples', 'benchmarks', 'test']
    .flatMap((folder) => filesUnder(folder, 'package.json'))
    .map(({ path }) => dirname(path));
  return ['.', ...found.filter((folder) => !APART.includes(folder))];
}
