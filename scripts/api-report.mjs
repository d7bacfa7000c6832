// Writes packages/X/api.md: every name that a package exports, subpath by subpath, with its declaration, sorted, without
// comments; then the declarations that those lead to and that have no name for the outside. A change of the public surface is then visible in review. `--check` compares instead. Needs a build.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import ts from 'typescript';
import { packageFolders, readJson, root } from './lib/repo.mjs';
import { atLeastOne } from './lib/shown.mjs';

const check = process.argv.includes('--check');
const printer = ts.createPrinter({ removeComments: true });

for (const folder of packageFolders()) {
  const path = join(folder, 'api.md');
  const report = reportOf(folder);
  const name = relative(root, path);
  if (!check) {
    writeFileSync(path, report);
    console.log(`wrote ${name}`);
  } else if (existsSync(path) && readFileSync(path, 'utf8') === report) {
    console.log(`${name} is up to date`);
  } else {
    console.error(
      `${name} does not match the sources; run npm run build && npm run api, and review the difference`,
    );
    process.exitCode = 1;
  }
}

function reportOf(folder) {
  const { name, exports } = readJson(join(folder, 'package.json'));
  const subpaths = Object.entries(exports).filter(([, target]) => typeof target === 'object');
  return atLeastOne(`subpath with types in the exports of ${name}`, subpaths)
    .map(([subpath, target]) => {
      const title = `# Public names of ${name}${subpath.slice(1)}\n\nWritten by \`npm run api\`.\n`;
      return `${title}\n${namesOf(folder, join(folder, target.import.types))}`;
    })
    .join('\n');
}

function namesOf(folder, barrel) {
  if (!existsSync(barrel)) throw new Error(`${relative(root, barrel)} is missing; run npm run build`);
  // Without the source condition: siblings are looked at as they are published.
  const program = ts.createProgram([barrel], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    types: ['node'],
    typeRoots: [join(root, 'node_modules', '@types')],
    skipLibCheck: true,
  });
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(program.getSourceFile(barrel));
  const symbols = atLeastOne(
    `name in ${relative(root, barrel)}`,
    module ? checker.getExportsOfModule(module) : [],
  );
  const exported = symbols.map((symbol) => ({ name: symbol.name, symbol: original(symbol, checker) }));
  const reached = reachedFrom(exported, checker, folder);
  const list = (entries) =>
    entries
      .map(({ name, symbol }) => ({ name, text: declarationOf(name, symbol, folder) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, text }) => `## ${name}\n\n\`\`\`ts\n${text}\n\`\`\`\n`)
      .join('\n');
  return reached.length === 0 ? list(exported) : `${list(exported)}\n# Reached from them\n\n${list(reached)}`;
}

/** What the declarations of `exported` name, and what that names, as far as it is this package's and not exported. */
function reachedFrom(exported, checker, folder) {
  const seen = new Set(exported.map(({ symbol }) => symbol));
  const reached = [];
  const look = (node) => {
    if (ts.isIdentifier(node)) {
      const symbol = original(checker.getSymbolAtLocation(node), checker);
      if (symbol && !seen.has(symbol) && isOwnDeclaration(symbol, folder)) {
        seen.add(symbol);
        reached.push({ name: symbol.name, symbol });
        symbol.declarations.forEach(look);
      }
    }
    if (!isPrivate(node)) ts.forEachChild(node, look);
  };
  for (const { symbol } of exported) {
    for (const declaration of symbol.declarations ?? []) if (isOwn(declaration, folder)) look(declaration);
  }
  return reached;
}

function original(symbol, checker) {
  return symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

/** Types, classes, functions and constants; not their members and parameters, which stand in them. */
function isOwnDeclaration(symbol, folder) {
  const kinds = ts.SymbolFlags.Type | ts.SymbolFlags.Function | ts.SymbolFlags.BlockScopedVariable;
  if (!(symbol.flags & kinds) || symbol.flags & ts.SymbolFlags.TypeParameter) return false;
  return (symbol.declarations ?? []).length > 0 && symbol.declarations.every((one) => isOwn(one, folder));
}

function isOwn(declaration, folder) {
  return declaration.getSourceFile().fileName.startsWith(`${folder.split(sep).join('/')}/`);
}

function declarationOf(name, symbol, folder) {
  return (symbol.declarations ?? [])
    .map((declaration) => {
      if (!isOwn(declaration, folder)) return `export { ${name} }; // of another package`;
      const file = declaration.getSourceFile();
      return printer.printNode(ts.EmitHint.Unspecified, withoutPrivate(statementOf(declaration)), file);
    })
    .join('\n');
}

/** `const x: T` is declared inside a statement; that is what a reader wants to see. */
function statementOf(node) {
  return ts.isVariableDeclaration(node) ? node.parent.parent : node;
}

function withoutPrivate(node) {
  if (!ts.isClassDeclaration(node)) return node;
  const { modifiers, name, typeParameters, heritageClauses } = node;
  const members = node.members.filter((member) => !isPrivate(member));
  return ts.factory.updateClassDeclaration(node, modifiers, name, typeParameters, heritageClauses, members);
}

function isPrivate(member) {
  if (member.name && ts.isPrivateIdentifier(member.name)) return true;
  if (!ts.canHaveModifiers(member)) return false;
  return (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private) !== 0;
}
