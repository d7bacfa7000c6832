/** Files of this repository, and their syntax trees. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';

export const root = join(__dirname, '..', '..', '..');

export interface Source {
  /** Relative to the root of the repository, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** Every file under a folder whose name ends in one of `endings`; none when the folder does not exist. */
export function filesUnder(folder: string, ...endings: string[]): Source[] {
  const absolute = join(root, folder);
  if (!existsSync(absolute)) return [];
  return readdirSync(absolute, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/[\\/](node_modules|dist|coverage)[\\/]/.test(path))
    .sort()
    .map((path) => ({
      path: relative(root, path).replaceAll('\\', '/'),
      text: readFileSync(path, 'utf8'),
    }));
}

/** Names of the folders in packages/. */
export function packageNames(): string[] {
  return readdirSync(join(root, 'packages')).filter((name) => existsSync(manifestPath(name)));
}

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly [field: string]: unknown;
}

/** The package.json in a folder of the repository. */
export function manifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest;
}

/** The published code of every package. */
export function librarySources(): Source[] {
  return packageNames().flatMap((name) => filesUnder(`packages/${name}/src`, '.ts'));
}

/** The test code of every package, of the examples and of the repository. */
export function testSources(): Source[] {
  const own = filesUnder('test', '.ts').filter(({ path }) => !path.startsWith('test/consumers/'));
  const examples = filesUnder('examples', '.ts').filter(({ path }) => /^examples\/[^/]+\/test\//.test(path));
  return [
    ...packageNames().flatMap((name) => filesUnder(`packages/${name}/test`, '.ts')),
    ...examples,
    ...own,
  ];
}

/** A skeleton is a package whose barrel exports nothing yet. */
export function isSkeleton(name: string): boolean {
  const barrel = filesUnder(`packages/${name}/src`, 'index.ts').find(
    ({ path }) => path === `packages/${name}/src/index.ts`,
  );
  return barrel === undefined || barrel.text.replace(/\/\*[^]*?\*\//g, '').trim() === 'export {};';
}

export function parse(source: Source): ts.SourceFile {
  return ts.createSourceFile(source.path, source.text, ts.ScriptTarget.ES2022, true);
}

/** Calls `visitor` for every node of a file. */
export function everyNode(file: ts.SourceFile, visitor: (node: ts.Node) => void): void {
  const visit = (node: ts.Node): void => {
    visitor(node);
    ts.forEachChild(node, visit);
  };
  visit(file);
}

/** `packages/core/src/x.ts:12`, for failure messages. */
export function where(file: ts.SourceFile, node: ts.Node): string {
  return `${file.fileName}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}`;
}

/** Applies a rule to a piece of code: how a rule's own test shows that it sees what it forbids. */
export function sample(text: string): ts.SourceFile {
  return parse({ path: 'sample.ts', text });
}

function manifestPath(name: string): string {
  return join(root, 'packages', name, 'package.json');
}
