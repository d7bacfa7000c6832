import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifest, packageNames, root } from './support/source.js';

const version = (json('lerna.json') as { version: string }).version;

describe.each(packageNames())('package %s', (name) => {
  const own = manifest(`packages/${name}`);

  it('is named after its folder and has the version of the family', () => {
    expect(own.name).toBe(`@guard/${name}`);
    expect(own.version).toBe(version);
  });

  it('is published in both formats, with the sources first for this repository', () => {
    expect(Object.keys((own['exports'] as { '.': object })['.'])).toEqual([
      '@guard/source',
      'import',
      'require',
    ]);
    expect(own).toMatchObject({
      type: 'module',
      license: 'MIT',
      sideEffects: false,
      engines: manifest('.')['engines'],
      main: './dist/cjs/index.js',
      types: './dist/cjs/index.d.ts',
      exports: {
        '.': {
          '@guard/source': './src/index.ts',
          import: { types: './dist/esm/index.d.ts', default: './dist/esm/index.js' },
          require: { types: './dist/cjs/index.d.ts', default: './dist/cjs/index.js' },
        },
        './package.json': './package.json',
      },
    });
  });

  it('asks for its siblings as peers, so that an application has one copy of each', () => {
    expect(Object.keys(own.dependencies ?? {}).filter(isSibling)).toEqual([]);
    const ranges = Object.entries(own.peerDependencies ?? {}).filter(([peer]) => isSibling(peer));
    expect(ranges.filter(([, range]) => range !== `^${version}`)).toEqual([]);
  });

  it.each(['esm', 'cjs'])('is built after its siblings, as %s', (format) => {
    const solution = format === 'esm' ? 'tsconfig.json' : 'tsconfig.cjs.json';
    expect(references(solution)).toContain(`packages/${name}/tsconfig.${format}.json`);
    const siblings = Object.keys(own.peerDependencies ?? {}).filter(isSibling);
    const expected = siblings.map((peer) => `../${peer.slice('@guard/'.length)}/tsconfig.${format}.json`);
    expect(references(`packages/${name}/tsconfig.${format}.json`)).toEqual(expected);
  });
});

function references(path: string): string[] {
  const { references: listed = [] } = json(path) as { references?: { path: string }[] };
  return listed.map((reference) => reference.path);
}

function json(path: string): unknown {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

function isSibling(name: string): boolean {
  return name.startsWith('@guard/');
}
