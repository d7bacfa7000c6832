import { existsSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { everyNode, filesUnder, isSkeleton, packageNames, parse, root } from './support/source.js';

/** Packages that bring no backend. Every other package is an adapter. */
const NOT_ADAPTERS = ['core', 'testing', 'nestjs'];
const FILES = [
  'README.md',
  'src/index.ts',
  'src/locks.ts',
  'src/state.ts',
  'src/connection.ts',
  'test/contract.spec.ts',
];
const STATEMENT_FOLDERS = ['src/scripts', 'src/statements'];

const adapters = packageNames().filter((name) => !NOT_ADAPTERS.includes(name));
const written = adapters.filter((name) => !isSkeleton(name));

describe('adapters', () => {
  it('are found', () => expect(adapters).toContain('typeorm'));

  it('have the same file names, so that who knows one knows all', () => {
    const missing = written.flatMap((name) => FILES.filter((file) => !has(name, file)).map(inPackage(name)));
    expect(missing.map((path) => `${path} is missing`)).toEqual([]);
  });

  it('keep their commands in scripts/ or statements/', () => {
    const without = written.filter((name) => !STATEMENT_FOLDERS.some((folder) => has(name, folder)));
    expect(without.map((name) => `packages/${name} has neither of ${STATEMENT_FOLDERS.join(', ')}`)).toEqual(
      [],
    );
  });

  it('run every contract suite of the ports they implement', () => {
    expect(written.flatMap(missingSuites)).toEqual([]);
  });
});

/** Suites of @guard/testing that `test/contract.spec.ts` does not call. */
function missingSuites(name: string): string[] {
  const suites = exportedSuites().filter((suite) => suite !== 'describeRunStore' || has(name, 'src/runs.ts'));
  const called = new Set<string>();
  for (const source of filesUnder(`packages/${name}/test`, 'contract.spec.ts')) {
    everyNode(parse(source), (node) => {
      if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) called.add(node.expression.text);
    });
  }
  return suites
    .filter((suite) => !called.has(suite))
    .map((suite) => `packages/${name}/test/contract.spec.ts does not call ${suite}`);
}

function exportedSuites(): string[] {
  const suites: string[] = [];
  for (const source of filesUnder('packages/testing/src', 'index.ts')) {
    everyNode(parse(source), (node) => {
      if (ts.isExportSpecifier(node) && node.name.text.startsWith('describe')) suites.push(node.name.text);
    });
  }
  return suites;
}

function has(name: string, path: string): boolean {
  return existsSync(join(root, 'packages', name, path));
}

function inPackage(name: string): (file: string) => string {
  return (file) => `packages/${name}/${file}`;
}
