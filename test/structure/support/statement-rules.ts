/**
 * Rules about the text of statements (SQL and Lua): values are parameters, never part of a text. Each rule answers with
 * what it found in one file. They look at syntax alone, so they ask for more than types would: a driver is handed only
 * what is visibly fixed in the same file, or comes from `statements/` or `scripts/`.
 */
import ts from 'typescript';
import {
  bare,
  calledName,
  CONSTANT,
  FixedTexts,
  isConcatenation,
  isSafe,
  nameOf,
  TEXT_CALLS,
} from './fixed-texts.js';
import { everyNode, where } from './source.js';

/** Methods of drivers whose first argument is a statement. */
const DRIVER_CALLS = [
  ...['query', 'execute', 'prepare', 'exec', 'pragma'],
  ...['eval', 'evalRo', 'scriptLoad', 'functionLoad'],
];
/** Methods of TypeORM's query builders that take a piece of a statement, and what makes one for its repositories. */
const BUILDER_CALLS = [
  ...['where', 'andWhere', 'orWhere', 'having', 'andHaving', 'orHaving'],
  ...['orderBy', 'addOrderBy', 'groupBy', 'addGroupBy', 'select', 'addSelect', 'distinctOn'],
  ...['leftJoin', 'leftJoinAndSelect', 'leftJoinAndMapOne', 'leftJoinAndMapMany'],
  ...['innerJoin', 'innerJoinAndSelect', 'innerJoinAndMapOne', 'innerJoinAndMapMany'],
  ...['addCommonTableExpression', 'onConflict', 'Raw', 'raw'],
];
/** Methods that take values, and pieces of a statement as functions. */
const WRITER_CALLS = ['set', 'values'];
/** Properties that hold a script, in what the clients of Redis are told about commands of one's own. */
const SCRIPT_PROPERTIES = ['lua', 'SCRIPT'];
const COMMENTS = String.raw`^(?:\s|\(|--[^\n]*\n|/\*[^]*?\*/)*`;
/** As statements are written here, which need not be whole. */
const LOUD = new RegExp(
  `${COMMENTS}(SELECT|INSERT|UPDATE|DELETE|REPLACE|MERGE|WITH|CREATE|ALTER|DROP|PRAGMA|BEGIN|LISTEN|NOTIFY)\\s`,
);
/** As others may write them. */
const QUIET = new RegExp(
  `${COMMENTS}(select\\b[^]*\\bfrom\\b|insert\\s+into|update\\b[^]*\\bset\\b|delete\\s+from|replace\\s+into|` +
    `merge\\s+into|with\\b[^]*\\bas\\s*\\(|(create|alter|drop)\\s+(table|index|view|trigger))`,
  'i',
);
const LUA = /\bredis\.p?call\(/;

export function looksLikeStatement(text: string): boolean {
  return LOUD.test(text) || QUIET.test(text) || LUA.test(text);
}

/** Values that are written into a text which `isStatement`, by a template, by `+`, or by a function of texts. */
export function unsafeParts(file: ts.SourceFile, isStatement: (text: string) => boolean): string[] {
  const problems: string[] = [];
  const check = (node: ts.Node, part: ts.Expression): void => {
    if (isSafe(part)) return;
    problems.push(`${where(file, node)}: \${${part.getText(file)}} in a statement; make it a parameter`);
  };
  everyNode(file, (node) => {
    if (ts.isTemplateExpression(node) && isStatement(node.getText(file).slice(1))) {
      for (const span of node.templateSpans) check(node, span.expression);
    }
    if (isConcatenation(node) && isStatement(node.left.getText(file).slice(1))) check(node, node.right);
  });
  return problems;
}

/** Statements that a driver or a query builder is handed and that are not visibly fixed. */
export function patchedCalls(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  const fixed = new FixedTexts(file);
  everyNode(file, (node) => {
    const script = scriptOf(node);
    if (script !== undefined && !fixed.isFixed(script)) {
      problems.push(`${where(file, node)}: ${script.getText(file)}; make it a parameter`);
    }
    if (!ts.isCallExpression(node)) return;
    const [statement] = node.arguments;
    if (statement === undefined || isOfAPattern(node) || fixed.knows(node)) return;
    const name = calledName(node);
    // Nobody sees what a computed name is: it counts as a driver's.
    const runs = isComputed(node.expression) || DRIVER_CALLS.includes(name ?? '');
    const piece = BUILDER_CALLS.includes(name ?? '')
      ? node.arguments.map((part) => patchedPiece(part, fixed)).find((part) => part !== undefined)
      : WRITER_CALLS.includes(name ?? '')
        ? patchedFunction(node.arguments, fixed)
        : undefined;
    const found = runs && !fixed.isFixed(statement) ? statement : piece;
    if (found === undefined) return;
    problems.push(`${where(file, node)}: ${found.getText(file)}; make it a parameter`);
  });
  return problems;
}

/** A text in which a value stands for all to see. Objects are parameters; other calls are looked at by themselves. */
function patchedPiece(given: ts.Node, fixed: FixedTexts): ts.Node | undefined {
  if (ts.isObjectLiteralExpression(given) || ts.isCallExpression(given) || ts.isNewExpression(given))
    return undefined;
  if (ts.isExpression(given) && fixed.isVisiblyPatched(given)) return given;
  return ts.forEachChild(given, (part) => patchedPiece(part, fixed));
}

/** ``set({ v: () => `v || '${key}'` })``: what a function answers is a piece of the statement. */
function patchedFunction(given: readonly ts.Node[], fixed: FixedTexts): ts.Node | undefined {
  const look = (node: ts.Node): ts.Node | undefined => {
    if (ts.isArrayLiteralExpression(node) || ts.isObjectLiteralExpression(node))
      return ts.forEachChild(node, look);
    if (ts.isMethodDeclaration(node)) return node.body && patchedPiece(node.body, fixed);
    if (!ts.isPropertyAssignment(node)) return undefined;
    const value = bare(node.initializer);
    const isFunction = ts.isArrowFunction(value) || ts.isFunctionExpression(value);
    return isFunction ? patchedPiece(value.body, fixed) : look(value);
  };
  for (const part of given) {
    const found = look(part);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * The script of a command that is written as a list, such as `['eval', script]`, `client.call('EVAL', script)` and
 * `client.script('LOAD', script)`; and that of a command of one's own.
 */
function scriptOf(node: ts.Node): ts.Expression | undefined {
  if (ts.isPropertyAssignment(node) && SCRIPT_PROPERTIES.includes(node.name.getText()))
    return node.initializer;
  const parts = ts.isArrayLiteralExpression(node)
    ? node.elements
    : ts.isCallExpression(node)
      ? node.arguments
      : [];
  const command = parts
    .slice(0, 2)
    .findIndex((part) => ts.isStringLiteralLike(part) && /^(eval(_ro)?|load)$/i.test(part.text));
  return command === -1 ? undefined : parts[command + 1];
}

/** Functions of drivers that are given away, for whoever calls them under another name is not seen. */
export function driversGivenAway(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  const fixed = new FixedTexts(file);
  const isOfDriver = (name: string | undefined): boolean => DRIVER_CALLS.includes(name ?? '');
  everyNode(file, (node) => {
    if (isTakenByName(node, isOfDriver)) {
      problems.push(`${where(file, node)}: ${node.getText(file)}; call it where it is`);
    }
    if (!ts.isPropertyAccessExpression(node) && !ts.isElementAccessExpression(node)) return;
    const names = isComputed(node) ? fixed.namesIn(node.argumentExpression) : [nameOf(node)];
    if (!names.some(isOfDriver)) return;
    const { parent } = node;
    const isHandedOn = ts.isCallExpression(parent) && parent.arguments.some((part) => part === node);
    const isNamed = ts.isVariableDeclaration(parent) && parent.initializer === node;
    const isBound =
      ts.isPropertyAccessExpression(parent) && ['bind', 'call', 'apply'].includes(parent.name.text);
    if (isHandedOn || isNamed || isBound) {
      problems.push(`${where(file, node)}: ${parent.getText(file).split('\n')[0]}; call it where it is`);
    }
  });
  return problems;
}

/** `const { query: run } = db`, and `Reflect.get(db, 'query')`. */
function isTakenByName(node: ts.Node, isOfDriver: (name: string | undefined) => boolean): boolean {
  if (ts.isBindingElement(node)) {
    const { propertyName } = node;
    if (propertyName === undefined) return false;
    if (!ts.isComputedPropertyName(propertyName)) return isOfDriver(textOf(propertyName));
    // A constant is a name that somebody has looked at; a symbol, for one.
    return !CONSTANT.test(propertyName.expression.getText());
  }
  if (!ts.isCallExpression(node) || node.expression.getText() !== 'Reflect.get') return false;
  return isOfDriver(node.arguments[1] && textOf(node.arguments[1]));
}

function textOf(node: ts.Node): string | undefined {
  return ts.isIdentifier(node) || ts.isStringLiteralLike(node) ? node.text : undefined;
}

/** Ways to make a text that no template shows. */
export function patchwork(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (grows(node) || isTextCall(node) || takesColumns(node)) {
      problems.push(
        `${where(file, node)}: ${node.getText(file).split('\n')[0]}; write the statement as it is`,
      );
    }
  });
  return problems;
}

/** Calls that make a text of one which looks like a statement. */
export function textCalls(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (!ts.isCallExpression(node) || !TEXT_CALLS.includes(calledName(node) ?? '')) return;
    let found = false;
    const look = (inner: ts.Node): void => {
      if (ts.isStringLiteralLike(inner) && looksLikeStatement(inner.text)) found = true;
      ts.forEachChild(inner, look);
    };
    look(node);
    if (found)
      problems.push(`${where(file, node)}: ${node.getText(file).split('\n')[0]}; make it a parameter`);
  });
  return problems;
}

/** `a[b]`, where `b` is no text. */
function isComputed(given: ts.Expression): given is ts.ElementAccessExpression {
  const expression = bare(given);
  return ts.isElementAccessExpression(expression) && !ts.isStringLiteralLike(expression.argumentExpression);
}

/** A regular expression has a method of the same name as a driver. */
function isOfAPattern({ expression }: ts.CallExpression): boolean {
  if (!ts.isPropertyAccessExpression(expression)) return false;
  const receiver = expression.expression;
  return (
    ts.isRegularExpressionLiteral(receiver) || (ts.isIdentifier(receiver) && CONSTANT.test(receiver.text))
  );
}

/** `a + b` of anything but numbers, and `a += b`. */
function grows(node: ts.Node): boolean {
  if (!ts.isBinaryExpression(node)) return false;
  const { kind } = node.operatorToken;
  if (kind === ts.SyntaxKind.PlusEqualsToken) return true;
  return kind === ts.SyntaxKind.PlusToken && ![node.left, node.right].some(ts.isNumericLiteral);
}

function isTextCall(node: ts.Node): boolean {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
  const { text } = node.expression.name;
  if (text === 'concat') return true;
  // A script is its parts, one after the other: they are constants, as its own file says.
  if (text === 'join') return node.expression.expression.getText() !== 'parts';
  const [, replacement] = node.arguments;
  return (
    ['replace', 'replaceAll'].includes(text) &&
    replacement !== undefined &&
    !ts.isStringLiteralLike(replacement)
  );
}

/** An exported function whose caller, in another file, says what stands in the text. */
function takesColumns(node: ts.Node): boolean {
  if (!ts.isFunctionDeclaration(node)) return false;
  const isExported = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;
  return isExported && node.parameters.some(({ name }) => ['column', 'columns'].includes(name.getText()));
}
