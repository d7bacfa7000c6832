/**
 * Rules about the text of statements (SQL and Lua): values are parameters, never part of a text. Each rule answers with
 * what it found in one file. They look at syntax alone, so they ask for more than types would: a driver is handed only
 * what is visibly fixed in the same file, or comes from `statements/` or `scripts/`.
 */
import ts from 'typescript';
import { everyNode, where } from './source.js';

/**
 * Names whose value may stand in the text of a statement: identifiers of tables, columns and channels that were validated
 * when the adapter was made, and other pieces of statement text that are constants. Everything else is a parameter.
 */
const SAFE = ['table', 'tables', 'column', 'columns', 'schema', 'channel'];
/** Methods of drivers whose first argument is a statement. */
const DRIVER_CALLS = ['query', 'execute', 'prepare', 'exec', 'pragma', 'eval'];
/** Methods of TypeORM's query builders that take a piece of a statement. */
const BUILDER_CALLS = [
  'where',
  'andWhere',
  'orWhere',
  'having',
  'andHaving',
  'orHaving',
  'orderBy',
  'groupBy',
];
/** Functions that make a text of others. */
const TEXT_CALLS = ['concat', 'join', 'replace', 'replaceAll', 'format'];
const CONSTANT = /^[A-Z][A-Z0-9_]*$/;
const STATEMENT_FOLDER = /(^|\/)(statements|scripts)\//;

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
    if (!ts.isCallExpression(node)) return;
    const name = calledName(node);
    const [statement] = node.arguments;
    if (statement === undefined || name === undefined || isOfAPattern(node) || fixed.knows(node)) return;
    const builds = BUILDER_CALLS.includes(name) && !fixed.isVisiblyPatched(statement);
    if (
      builds ||
      (!BUILDER_CALLS.includes(name) && (!DRIVER_CALLS.includes(name) || fixed.isFixed(statement)))
    ) {
      return;
    }
    problems.push(`${where(file, node)}: ${statement.getText(file)}; make it a parameter`);
  });
  return problems;
}

/** Functions of drivers that are given away, for whoever calls them under another name is not seen. */
export function driversGivenAway(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (!ts.isPropertyAccessExpression(node) && !ts.isElementAccessExpression(node)) return;
    if (!DRIVER_CALLS.includes(nameOf(node) ?? '')) return;
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

/** Which texts of a file cannot hold a value. */
class FixedTexts {
  private readonly variables = new Map<string, ts.Expression[]>();
  private readonly functions = new Set<string>();
  private readonly fromStatements = new Set<string>();

  constructor(file: ts.SourceFile) {
    everyNode(file, (node) => {
      if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer) {
        const known = this.variables.get(node.name.text) ?? [];
        this.variables.set(node.name.text, [...known, node.initializer]);
      }
      if (isAssignment(node) && ts.isIdentifier(node.left)) {
        const grown = node.operatorToken.kind === ts.SyntaxKind.PlusEqualsToken;
        const known = this.variables.get(node.left.text) ?? [];
        this.variables.set(node.left.text, [...known, grown ? node : node.right]);
      }
      if (ts.isFunctionDeclaration(node) && node.name) this.functions.add(node.name.text);
      if (ts.isMethodDeclaration(node)) this.functions.add(node.name.getText(file));
      if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) this.imported(node);
    });
  }

  /** Whether a function of this file is called, or one that it imports: the driver's is called in there, if at all. */
  knows({ expression }: ts.CallExpression): boolean {
    return ts.isIdentifier(expression) && this.functions.has(expression.text);
  }

  /** Whether an expression is a constant, something that came from elsewhere whole, or made in `statements/`. */
  isFixed(given: ts.Expression, depth = 0): boolean {
    const node = bare(given);
    if (depth > 5) return false;
    // What is run is no text: that is what others mean by the same name.
    if (ts.isStringLiteralLike(node) || ts.isArrowFunction(node) || isSafe(node)) return true;
    if (ts.isTemplateExpression(node)) {
      return node.templateSpans.every(({ expression }) => this.isConstant(expression));
    }
    if (ts.isIdentifier(node)) {
      return (
        CONSTANT.test(node.text) ||
        (this.variables.get(node.text) ?? []).every((v) => this.isFixed(v, depth + 1))
      );
    }
    if (ts.isConditionalExpression(node)) {
      return this.isFixed(node.whenTrue, depth + 1) && this.isFixed(node.whenFalse, depth + 1);
    }
    if (ts.isCallExpression(node)) return this.comesFromStatements(node);
    if (ts.isBinaryExpression(node)) return false;
    if (ts.isObjectLiteralExpression(node)) {
      return node.properties.every(
        (property) => !isText(property) || this.isFixed(property.initializer, depth + 1),
      );
    }
    return ts.isPropertyAccessExpression(node);
  }

  /** Whether a value stands in it for all to see. */
  isVisiblyPatched(given: ts.Expression): boolean {
    const node = bare(given);
    if (ts.isTemplateExpression(node)) return !this.isFixed(node);
    return ts.isBinaryExpression(node) && isConcatenation(node);
  }

  private isConstant(part: ts.Expression): boolean {
    return isSafe(part) || (ts.isIdentifier(part) && CONSTANT.test(part.text));
  }

  /** A function of this file, or one that puts texts together, may put a value into its answer. */
  private comesFromStatements(call: ts.CallExpression): boolean {
    const name = calledName(call) ?? '';
    if (TEXT_CALLS.includes(name) || (this.functions.has(name) && !this.fromStatements.has(name)))
      return false;
    return this.fromStatements.has(name) || ts.isPropertyAccessExpression(call.expression);
  }

  private imported(node: ts.ImportDeclaration): void {
    const names = node.importClause?.namedBindings;
    if (names === undefined || !ts.isNamedImports(names)) return;
    const fromStatements = STATEMENT_FOLDER.test((node.moduleSpecifier as ts.StringLiteral).text);
    for (const { name } of names.elements)
      (fromStatements ? this.fromStatements : this.functions).add(name.text);
  }
}

function isAssignment(node: ts.Node): node is ts.BinaryExpression {
  if (!ts.isBinaryExpression(node)) return false;
  const { kind } = node.operatorToken;
  return kind === ts.SyntaxKind.EqualsToken || kind === ts.SyntaxKind.PlusEqualsToken;
}

/** The part of a driver's object that holds the statement. */
function isText(property: ts.ObjectLiteralElementLike): property is ts.PropertyAssignment {
  return ts.isPropertyAssignment(property) && ['text', 'sql'].includes(property.name.getText());
}

function bare(node: ts.Expression): ts.Expression {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isNonNullExpression(node)) {
    return bare(node.expression);
  }
  return ts.isAwaitExpression(node) ? bare(node.expression) : node;
}

function calledName(call: ts.CallExpression): string | undefined {
  return nameOf(call.expression);
}

/** `a`, `b.a` and `b['a']`, however it is wrapped. */
function nameOf(given: ts.Expression): string | undefined {
  const expression = bare(given);
  if (ts.isPropertyAccessExpression(expression)) return expression.name.text;
  if (ts.isElementAccessExpression(expression) && ts.isStringLiteralLike(expression.argumentExpression)) {
    return expression.argumentExpression.text;
  }
  return ts.isIdentifier(expression) ? expression.text : undefined;
}

/** A regular expression has a method of the same name as a driver. */
function isOfAPattern({ expression }: ts.CallExpression): boolean {
  if (!ts.isPropertyAccessExpression(expression)) return false;
  const receiver = expression.expression;
  return (
    ts.isRegularExpressionLiteral(receiver) || (ts.isIdentifier(receiver) && CONSTANT.test(receiver.text))
  );
}

function isConcatenation(node: ts.Node): node is ts.BinaryExpression {
  return (
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.PlusToken &&
    [node.left, node.right].some((side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side))
  );
}

function isSafe(part: ts.Expression): boolean {
  if (ts.isStringLiteralLike(part)) return true;
  const [name = ''] = part.getText().split('.');
  return (ts.isIdentifier(part) || ts.isPropertyAccessExpression(part)) && SAFE.includes(name);
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
