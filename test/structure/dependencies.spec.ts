import { filesUnder, manifest, packageNames } from './support/source.js';

const page = filesUnder('docs', 'dependencies.md').find(({ path }) => path === 'docs/dependencies.md');
const rows = [...(page?.text ?? '').matchAll(/^\| `([^`]+)`\s*\|(.*)$/gm)];
const explained = rows.map((row) => row[1]);

describe('dependencies', () => {
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

  it('have a reason in their row', () => {
    expect(rows.filter((row) => row[2]?.split('|').some((cell) => cell.trim().length > 20) !== true)).toEqual(
      [],
    );
  });
});

/** Every dependency from outside this repository, with the first folder that names it. */
function dependencies(): Map<string, string> {
  const found = new Map<string, string>();
  const folders = ['.', 'benchmarks', ...packageNames().map((name) => `packages/${name}`)];
  for (const folder of folders) {
    const { dependencies: plain, devDependencies: dev, peerDependencies: peer } = manifest(folder);
    for (const name of Object.keys({ ...plain, ...dev, ...peer })) {
      if (!name.startsWith('@guard/') && !found.has(name)) found.set(name, folder);
    }
  }
  return found;
}
