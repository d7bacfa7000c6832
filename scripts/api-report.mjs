// Writes packages/X/api.md: every name that a package exports, subpath by subpath, with its declaration, sorted, without
// comments. A change of the public surface is then visible in review. `--check` compares instead. Needs a build.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import ts from 'typescript';
import { packageFolders, readJson, root } from './lib/repo.mjs';

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
  return Object.entries(exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([subpath, target]) => {
      const title = `# Public names of ${name}${subpath.slice(1)}\n\nWritten by \`npm run api\`.\n`;
      const body = namesOf(folder, join(folder, target.import.types));
      return body ? `${title}\n${body}` : title;
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
  const symbols = module ? checker.getExportsOfModule(module) : [];
  const entries = symbols
    .map((symbol) => ({ name: symbol.name, text: declarationOf(symbol, checker, folder) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.map(({ name, text }) => `## ${name}\n\n\`\`\`ts\n${text}\n\`\`\`\n`).join('\n');
}

function declarationOf(symbol, checker, folder) {
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  return (target.declarations ?? [])
    .map((declaration) => {
      const file = declaration.getSourceFile();
      if (!file.fileName.startsWith(folder.split(sep).join('/')))
        return `export { ${symbol.name} }; // of another package`;
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
  return (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private) !== 0;
}
