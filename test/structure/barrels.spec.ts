import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { filesUnder, packageNames, parse, root, sample, where } from './support/source.js';

const barrels = packageNames().map((name) => `packages/${name}/src/index.ts`);

describe('barrels', () => {
  it('exist in every package', () => {
    const found = packageNames().flatMap((name) => filesUnder(`packages/${name}/src`, 'index.ts'));
    expect(found.map(({ path }) => path)).toEqual(expect.arrayContaining(barrels));
  });

  it('hold nothing but explicit named exports', () => {
    const files = packageNames()
      .flatMap((name) => filesUnder(`packages/${name}/src`, 'index.ts'))
      .filter(({ path }) => barrels.includes(path));
    expect(files.flatMap((source) => unwantedStatements(parse(source)))).toEqual([]);
  });

  it('export only names that have a doc comment where they are declared', () => {
    expect(barrels.flatMap(exportsOf).length).toBeGreaterThan(100);
    expect(undocumentedExports(barrels)).toEqual([]);
  });

  it.each([
    "export * from './a.js';",
    "export * as a from './a.js';",
    'export const a = 1;',
    'export default 1;',
  ])('may not hold %s', (text) => expect(unwantedStatements(sample(text))).toHaveLength(1));
});

function unwantedStatements(file: ts.SourceFile): string[] {
  return file.statements
    .filter(
      (node) => !(ts.isExportDeclaration(node) && node.exportClause && ts.isNamedExports(node.exportClause)),
    )
    .map((node) => `${where(file, node)}: a barrel holds only export { name } from '...'`);
}

/** By the syntax alone: a program with all types of all packages would take longer than every other rule together. */
function undocumentedExports(paths: string[]): string[] {
  return paths.flatMap((path) =>
    exportsOf(path)
      .filter(({ name, from }) => !isDocumented(from, name))
      .map(({ name }) => `${path} exports ${name}, which has no doc comment`),
  );
}

/** The named exports of a barrel, each with the file that it comes from and its name there. */
function exportsOf(path: string): { readonly name: string; readonly from: string }[] {
  return syntaxOf(path).statements.flatMap((node) =>
    ts.isExportDeclaration(node) && node.exportClause && ts.isNamedExports(node.exportClause)
      ? node.exportClause.elements.map(({ name, propertyName }) => ({
          name: (propertyName ?? name).text,
          from: target(path, node.moduleSpecifier),
        }))
      : [],
  );
}

function isDocumented(path: string, name: string): boolean {
  return syntaxOf(path).statements.some((node) => {
    if (namesOf(node).includes(name)) return ts.getJSDocCommentsAndTags(node).some(says);
    if (!ts.isExportDeclaration(node) || !node.exportClause || !ts.isNamedExports(node.exportClause))
      return false;
    const again = node.exportClause.elements.find((element) => element.name.text === name);
    return (
      again !== undefined &&
      node.moduleSpecifier !== undefined &&
      isDocumented(target(path, node.moduleSpecifier), (again.propertyName ?? again.name).text)
    );
  });
}

/** A comment that has tags alone says nothing. */
function says(comment: ts.JSDoc | ts.JSDocTag): boolean {
  return ts.isJSDoc(comment) && (ts.getTextOfJSDocComment(comment.comment) ?? '').trim() !== '';
}

function namesOf(node: ts.Statement): string[] {
  if (ts.isVariableStatement(node))
    return node.declarationList.declarations.map(({ name }) => (ts.isIdentifier(name) ? name.text : ''));
  const { name } = node as { readonly name?: ts.Node };
  return name !== undefined && ts.isIdentifier(name) ? [name.text] : [];
}

function target(path: string, specifier: ts.Expression | undefined): string {
  if (specifier === undefined || !ts.isStringLiteral(specifier))
    throw new Error(`${path}: export from where?`);
  return join(path, '..', specifier.text.replace(/\.js$/, '.ts'));
}

const syntax = new Map<string, ts.SourceFile>();

function syntaxOf(path: string): ts.SourceFile {
  let file = syntax.get(path);
  if (file === undefined)
    syntax.set(path, (file = parse({ path, text: readFileSync(join(root, path), 'utf8') })));
  return file;
}
