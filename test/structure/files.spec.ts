/** Code is where the other rules look for it: in files of known endings, and in known folders. */
import { filesUnder } from './support/source.js';

const FOLDERS = ['packages', 'scripts', 'benchmarks', 'examples', 'test'];
const ENDINGS = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx'];

describe('files of code', () => {
  it('are where the rules look for them', () => {
    const paths = FOLDERS.flatMap((folder) => filesUnder(folder, ...ENDINGS)).map(({ path }) => path);
    expect(paths.length).toBeGreaterThan(0);
    expect(paths.flatMap(outOfSight)).toEqual([]);
  });

  it.each([
    'packages/core/src/runtime/x.mts',
    'packages/core/src/runtime/x.cts',
    'packages/core/src/runtime/x.d.mts',
    'packages/core/src/x.js',
    'packages/core/src/x.mjs',
    'packages/core/src/x.cjs',
    'packages/core/test/x.spec.mts',
    'packages/core/test/x.spec.mjs',
    'packages/core/lib/x.ts',
    'test/structure/x.spec.cts',
    'examples/a/test/x.spec.mjs',
    'scripts/x.js',
    'scripts/x.ts',
    'benchmarks/src/x.tsx',
  ])('sees %s', (path) => expect(outOfSight(path)).toHaveLength(1));

  it.each([
    'packages/core/src/x.ts',
    'packages/core/test/x.spec.ts',
    'packages/core/test/soak/main.mjs',
    'test/consumers/cjs/main.cjs',
    'scripts/lib/x.mjs',
    'scripts/x.cjs',
    'examples/a/src/main.ts',
    'test/structure/x.spec.ts',
  ])('accepts %s', (path) => expect(outOfSight(path)).toEqual([]));
});

/** Why no rule would look at a file. */
function outOfSight(path: string): string[] {
  if (/\.(mts|cts|tsx|js|jsx)$/.test(path))
    return [`${path}: code of the packages and tests ends in .ts, scripts in .mjs or .cjs`];
  if (/\.(mjs|cjs)$/.test(path)) {
    const isSource = /^packages\/[^/]+\/(?!test\/)|\.spec\.(mjs|cjs)$/.test(path);
    return isSource ? [`${path}: code of the packages and tests ends in .ts`] : [];
  }
  if (path.startsWith('packages/') && !/^packages\/[^/]+\/(src|test)\//.test(path))
    return [`${path}: a package has code in src and test only`];
  return path.startsWith('scripts/') ? [`${path}: scripts end in .mjs or .cjs`] : [];
}
