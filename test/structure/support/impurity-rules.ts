/**
 * Rules about time, chance and the process: who reads them by himself cannot be played again. A rule names what it
 * forbids, and answers with every mention in one file.
 */
import ts from 'typescript';
import { nameOf } from './fixed-texts.js';
import { everyNode, where } from './source.js';

interface Forbidden {
  /** Global functions, and functions that modules export. */
  readonly names: readonly string[];
  /** Members, whoever has them. */
  readonly members: readonly string[];
  /** Members of one global object. */
  readonly of: ReadonlyMap<string, readonly string[]>;
  /** Modules that are seen by the names of what is taken from them, and so may not be taken whole. */
  readonly modules: readonly string[];
  /** Whether a date may be made of a number only. */
  readonly dates: boolean;
}

const LIBRARY: Forbidden = {
  names: [
    ...['console', 'performance', 'setTimeout', 'setInterval', 'setImmediate'],
    ...['hrtime', 'randomUUID', 'randomBytes', 'randomInt', 'randomFill', 'randomFillSync'],
  ],
  members: [
    ...['hrtime', 'randomUUID', 'randomBytes', 'randomInt', 'randomFill', 'randomFillSync'],
    'getRandomValues',
  ],
  of: new Map([
    ['Date', ['now']],
    ['Math', ['random']],
    ['process', ['exit', 'reallyExit', 'exitCode', 'abort', 'stdout', 'stderr', 'uptime']],
    ['AbortSignal', ['timeout']],
  ]),
  modules: ['timers', 'timers/promises', 'perf_hooks', 'process'],
  dates: true,
};

/** Ids may differ from run to run: they name what no other run may meet. */
const CHANCE: Forbidden = {
  names: ['randomBytes', 'randomInt', 'randomFill', 'randomFillSync'],
  members: ['randomBytes', 'randomInt', 'randomFill', 'randomFillSync', 'getRandomValues'],
  of: new Map([
    ['Math', ['random']],
    ['systemRandom', ['fraction']],
  ]),
  modules: [],
  dates: false,
};

/** Names of the object that has all others. */
const GLOBAL = ['globalThis', 'global'];

/** Whatever a library may not read or do by itself. */
export function impurities(file: ts.SourceFile): string[] {
  return mentions(file, LIBRARY, "use the guard's clock, its random or an event");
}

/** Chance that no seed gives back. */
export function unseededChance(file: ts.SourceFile): string[] {
  return mentions(file, CHANCE, 'draw from a SeededRandom, and print its seed');
}

function mentions(file: ts.SourceFile, forbidden: Forbidden, instead: string): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (!isMention(node, forbidden)) return;
    problems.push(`${where(file, node)}: ${node.parent.getText(file).split('\n')[0]}; ${instead}`);
  });
  return problems;
}

/** By name, wherever it stands: no way of getting at it is left out. */
function isMention(node: ts.Node, forbidden: Forbidden): boolean {
  if (ts.isStringLiteralLike(node) && ts.isElementAccessExpression(node.parent))
    return isForbiddenMember(node, forbidden);
  if (ts.isStringLiteralLike(node)) return isTakenWhole(node, forbidden);
  if (!ts.isIdentifier(node) || ts.isTypeNode(node.parent) || isDeclared(node)) return false;
  if (ts.isPropertyAccessExpression(node.parent) && node.parent.name === node)
    return isForbiddenMember(node, forbidden);
  if (forbidden.dates && node.text === 'Date') return !isPure(node.parent);
  if (forbidden.of.has(node.text) && isAlias(node)) return true;
  if (ts.isBindingElement(node.parent) && isTakenOut(node, node.parent, forbidden)) return true;
  if (isImported(node, forbidden)) return true;
  return forbidden.names.includes(node.text);
}

/** `const other = Math`: what is taken from it under that name is not seen. */
function isAlias(node: ts.Identifier): boolean {
  let whole: ts.Node = node;
  while (
    ts.isNonNullExpression(whole.parent) ||
    ts.isParenthesizedExpression(whole.parent) ||
    ts.isAsExpression(whole.parent)
  )
    whole = whole.parent;
  const { parent } = whole;
  return ts.isVariableDeclaration(parent) && parent.initializer === whole && ts.isIdentifier(parent.name);
}

/** `import * as timers from 'node:timers'`, `require('node:process')`, `export { exit } from 'node:process'`. */
function isTakenWhole(specifier: ts.StringLiteralLike, { modules }: Forbidden): boolean {
  const name = specifier.text.replace(/^node:/, '');
  if (!modules.includes(name)) return false;
  const { parent } = specifier;
  if (ts.isExportDeclaration(parent)) return true;
  if (ts.isCallExpression(parent))
    return /^(require|import|(globalThis\.)?process\.getBuiltinModule)$/.test(parent.expression.getText());
  if (!ts.isImportDeclaration(parent) || parent.importClause === undefined) return false;
  const { name: byDefault, namedBindings } = parent.importClause;
  // The process has a name by which it is seen.
  return (
    name !== 'process' &&
    (byDefault !== undefined || (namedBindings && ts.isNamespaceImport(namedBindings)) === true)
  );
}

/** `import { exit } from 'node:process'`, and that module under another name than its own. */
function isImported(node: ts.Identifier, forbidden: Forbidden): boolean {
  const { parent } = node;
  const declaration = ts.findAncestor(parent, ts.isImportDeclaration);
  if (declaration === undefined || !ts.isStringLiteral(declaration.moduleSpecifier)) return false;
  const members = forbidden.of.get(declaration.moduleSpecifier.text.replace(/^node:/, ''));
  if (members === undefined) return false;
  if (ts.isImportSpecifier(parent))
    return (parent.propertyName ?? parent.name) === node && members.includes(node.text);
  return (ts.isImportClause(parent) || ts.isNamespaceImport(parent)) && !forbidden.of.has(node.text);
}

/** `const { random } = Math`. */
function isTakenOut(name: ts.Identifier, element: ts.BindingElement, forbidden: Forbidden): boolean {
  const declaration = element.parent.parent;
  if ((element.propertyName ?? element.name) !== name || !ts.isVariableDeclaration(declaration)) return false;
  const of = (declaration.initializer && nameOf(declaration.initializer)) ?? '';
  // Each mention of a date is looked at by itself.
  return of !== 'Date' && forbidden.of.get(of)?.includes(name.text) === true;
}

/** `a.b` and `a['b']`. */
function isForbiddenMember(name: ts.Identifier | ts.StringLiteralLike, forbidden: Forbidden): boolean {
  const { names, members, of: owners, dates } = forbidden;
  if (members.includes(name.text)) return true;
  const { expression } = name.parent as ts.PropertyAccessExpression | ts.ElementAccessExpression;
  const of = nameOf(expression) ?? '';
  return (
    owners.get(of)?.includes(name.text) === true ||
    (GLOBAL.includes(of) && names.includes(name.text)) ||
    (GLOBAL.includes(of) && dates && ts.isStringLiteralLike(name) && name.text === 'Date')
  );
}

/** A date made of a number, and a question about one. */
function isPure(parent: ts.Node): boolean {
  if (ts.isNewExpression(parent)) return parent.arguments !== undefined && parent.arguments.length > 0;
  if (ts.isPropertyAccessExpression(parent))
    return ['UTC', 'parse', 'prototype', 'now'].includes(parent.name.text);
  if (ts.isElementAccessExpression(parent)) return true;
  return ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword;
}

/** A name that a file gives to something of its own, or that it takes from a module, is seen where the module is named. */
function isDeclared(node: ts.Identifier): boolean {
  const { parent } = node;
  return (
    ts.isPropertySignature(parent) ||
    ts.isMethodSignature(parent) ||
    ts.isMethodDeclaration(parent) ||
    (ts.isPropertyAssignment(parent) && parent.name === node) ||
    ts.isTypeReferenceNode(parent)
  );
}
