/**
 * Which expressions of a file are texts that cannot hold a value, as far as its syntax shows; and how such expressions
 * are read.
 */
import ts from 'typescript';
import { everyNode } from './source.js';

/**
 * Names whose value may stand in the text of a statement: identifiers of tables, columns and channels that were validated
 * when the adapter was made, and other pieces of statement text that are constants. Everything else is a parameter.
 */
const SAFE = ['table', 'tables', 'column', 'columns', 'schema', 'channel'];
/** Functions that make a text of others. */
export const TEXT_CALLS = ['concat', 'join', 'replace', 'replaceAll', 'format'];
export const CONSTANT = /^[A-Z][A-Z0-9_]*$/;
const STATEMENT_FOLDER = /(^|\/)(statements|scripts)\//;

/** Which texts of a file cannot hold a value. */
export class FixedTexts {
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

  /** The texts that an expression may be, as far as this file shows. */
  namesIn(given: ts.Expression): string[] {
    const node = bare(given);
    if (ts.isStringLiteralLike(node)) return [node.text];
    if (ts.isConditionalExpression(node))
      return [node.whenTrue, node.whenFalse].flatMap((one) => this.namesIn(one));
    if (!ts.isIdentifier(node)) return [];
    return (this.variables.get(node.text) ?? [])
      .map(bare)
      .filter(ts.isStringLiteralLike)
      .map(({ text }) => text);
  }

  /** Whether a value stands in it for all to see. */
  isVisiblyPatched(given: ts.Expression): boolean {
    const node = bare(given);
    if (ts.isIdentifier(node)) {
      const texts = (this.variables.get(node.text) ?? []).map(bare);
      return texts.some((text) => !ts.isIdentifier(text) && this.isVisiblyPatched(text));
    }
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

export function bare(node: ts.Expression): ts.Expression {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isNonNullExpression(node)) {
    return bare(node.expression);
  }
  return ts.isAwaitExpression(node) ? bare(node.expression) : node;
}

export function calledName(call: ts.CallExpression): string | undefined {
  return nameOf(call.expression);
}

/** `a`, `b.a` and `b['a']`, however it is wrapped. */
export function nameOf(given: ts.Expression): string | undefined {
  const expression = bare(given);
  if (ts.isPropertyAccessExpression(expression)) return expression.name.text;
  if (ts.isElementAccessExpression(expression) && ts.isStringLiteralLike(expression.argumentExpression)) {
    return expression.argumentExpression.text;
  }
  return ts.isIdentifier(expression) ? expression.text : undefined;
}

export function isConcatenation(node: ts.Node): node is ts.BinaryExpression {
  return (
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.PlusToken &&
    [node.left, node.right].some((side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side))
  );
}

export function isSafe(part: ts.Expression): boolean {
  if (ts.isStringLiteralLike(part)) return true;
  const [name = ''] = part.getText().split('.');
  return (ts.isIdentifier(part) || ts.isPropertyAccessExpression(part)) && SAFE.includes(name);
}
