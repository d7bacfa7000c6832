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
    expect(undocumentedExports(barrels.map((path) => join(root, path)))).toEqual([]);
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

function undocumentedExports(paths: string[]): string[] {
  const program = ts.createProgram(paths, {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    customConditions: ['@guard/source'],
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
    noEmit: true,
  });
  const checker = program.getTypeChecker();
  return paths.flatMap((path) => {
    const file = program.getSourceFile(path);
    const module = file && checker.getSymbolAtLocation(file);
    // A barrel without any export is not a module with a symbol.
    const exported = module ? checker.getExportsOfModule(module) : [];
    return exported
      .filter((symbol) => !isDocumented(symbol, checker))
      .map((symbol) => `${path.slice(root.length + 1)} exports ${symbol.name}, which has no doc comment`);
  });
}

function isDocumented(symbol: ts.Symbol, checker: ts.TypeChecker): boolean {
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  return ts.displayPartsToString(target.getDocumentationComment(checker)).trim() !== '';
}
