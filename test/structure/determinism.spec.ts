import ts from 'typescript';
import { everyNode, librarySources, parse, sample, where } from './support/source.js';

/** The only files that may read the real clock or make real random numbers. */
const REAL = ['packages/core/src/runtime/clock.ts', 'packages/core/src/runtime/random.ts'];
/** What a guard's clock cannot be for, each with its reason. */
const LOOKED_AT = [
  // The time that all processes of a machine share, behind locks and a log that they share.
  'packages/typeorm/src/machine-time.ts: process.hrtime',
  'packages/testing/src/process/shared-hold-log.ts: process.hrtime',
  // Makes a worker's wall clock wrong.
  'packages/testing/src/process/bootstrap.ts: Real = Date',
  // Says which server a test ran against.
  'packages/testing/src/servers/announce.ts: process.stderr',
];
const FORBIDDEN_NAMES = [
  ...['console', 'performance', 'setTimeout', 'setInterval', 'setImmediate'],
  ...['hrtime', 'randomUUID', 'randomBytes', 'randomInt'],
];
const FORBIDDEN_MEMBERS = ['hrtime', 'randomUUID', 'randomBytes', 'getRandomValues'];
const FORBIDDEN_OF = new Map([
  ['Date', ['now']],
  ['Math', ['random']],
  ['process', ['exit', 'reallyExit', 'exitCode', 'abort', 'stdout', 'stderr', 'uptime']],
  ['AbortSignal', ['timeout']],
]);

describe('determinism', () => {
  it('keeps time, chance, console and process.exit out of library sources', () => {
    const sources = librarySources().filter(({ path }) => !REAL.includes(path));
    const found = sources.flatMap((source) => impurities(parse(source)));
    const known = (problem: string) => LOOKED_AT.some((one) => problem.replace(/:\d+:/, ':').startsWith(one));
    expect(found.filter((problem) => !known(problem))).toEqual([]);
  });

  it.each([
    'Date.now()',
    'const now = Date.now;',
    'new Date()',
    'new Date',
    'Date()',
    'Math.random()',
    "console.log('x')",
    'process.exit(1)',
    "Date['now']()",
    'globalThis.Date.now()',
    'const { now } = Date;',
    'performance.now()',
    'process.hrtime.bigint()',
    'globalThis.setTimeout(f, 1)',
    'setTimeout(f, 1)',
    'AbortSignal.timeout(5)',
    "const D = globalThis['Date'];",
    'const { random } = Math;',
    'const { random: draw } = globalThis.Math;',
    'const M = Math;',
    'const { exit } = process;',
    'const node = process;',
    'process.exitCode = 1',
    'process.abort()',
    "process.stdout.write('x')",
    "process['stderr']",
    'process.uptime()',
    'crypto.randomUUID()',
    "import { randomUUID } from 'node:crypto';",
  ])('sees %s', (text) => expect(impurities(sample(text))).toHaveLength(1));

  it.each([
    'new Date(ms)',
    'x instanceof Date',
    'let at: Date',
    'clock.now()',
    'const { max } = Math;',
    'const process = start();',
    'xs.map(Math.floor)',
    'const { pid } = process;',
    '// Date.now()',
    'const text = "console.log"',
  ])('accepts %s', (text) => expect(impurities(sample(text))).toEqual([]));
});

function impurities(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (isImpure(node)) {
      problems.push(
        `${where(file, node)}: ${node.parent.getText(file).split('\n')[0]}; use the guard's clock, its random or an event`,
      );
    }
  });
  return problems;
}

/** By name, wherever it stands: no way of getting at it is left out. */
function isImpure(node: ts.Node): boolean {
  if (ts.isStringLiteral(node) && ts.isElementAccessExpression(node.parent)) return isForbiddenMember(node);
  if (!ts.isIdentifier(node) || ts.isTypeNode(node.parent) || isDeclared(node)) return false;
  if (ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) return isForbiddenMember(node);
  if (node.text === 'Date') return !isPure(node.parent);
  if (FORBIDDEN_OF.has(node.text) && isAlias(node)) return true;
  if (ts.isBindingElement(node.parent) && isTakenOut(node, node.parent)) return true;
  return FORBIDDEN_NAMES.includes(node.text);
}

/** `const other = Math`: what is taken from it under that name is not seen. */
function isAlias(node: ts.Identifier): boolean {
  const { parent } = node;
  return ts.isVariableDeclaration(parent) && parent.initializer === node && ts.isIdentifier(parent.name);
}

/** `const { random } = Math`. */
function isTakenOut(name: ts.Identifier, element: ts.BindingElement): boolean {
  const declaration = element.parent.parent;
  if ((element.propertyName ?? element.name) !== name || !ts.isVariableDeclaration(declaration)) return false;
  const of = declaration.initializer?.getText().split('.').at(-1) ?? '';
  // Each mention of a date is looked at by itself.
  return of !== 'Date' && FORBIDDEN_OF.get(of)?.includes(name.text) === true;
}

/** `a.b` and `a['b']`. */
function isForbiddenMember(name: ts.Identifier | ts.StringLiteral): boolean {
  if (FORBIDDEN_MEMBERS.includes(name.text)) return true;
  const { expression } = name.parent as ts.PropertyAccessExpression | ts.ElementAccessExpression;
  const of = expression.getText().split('.').at(-1) ?? '';
  return (
    FORBIDDEN_OF.get(of)?.includes(name.text) === true ||
    (of === 'globalThis' && FORBIDDEN_NAMES.includes(name.text)) ||
    (of === 'globalThis' && ts.isStringLiteral(name) && name.text === 'Date')
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
function isDeclared({ parent }: ts.Identifier): boolean {
  return (
    ts.isPropertySignature(parent) ||
    ts.isMethodSignature(parent) ||
    ts.isMethodDeclaration(parent) ||
    ts.isPropertyAssignment(parent) ||
    ts.isTypeReferenceNode(parent)
  );
}
