import ts from 'typescript';
import { everyNode, librarySources, parse, sample, where } from './support/source.js';

/**
 * Names whose value may stand in the text of a statement: identifiers of tables, columns and channels that were validated
 * when the adapter was made, and other pieces of statement text that are constants. Everything else is a parameter.
 */
const SAFE = ['table', 'tables', 'column', 'columns', 'schema', 'channel'];
const SQL =
  /^\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|MERGE|WITH|CREATE|ALTER|DROP|PRAGMA|BEGIN|LISTEN|NOTIFY)\s/;
const LUA = /\bredis\.p?call\(/;

describe('statements', () => {
  it('put nothing but safe identifiers into statement text', () => {
    const folders = librarySources().filter(({ path }) => isStatementFile(path));
    expect(folders.flatMap((source) => unsafeParts(parse(source), () => true))).toEqual([]);
  });

  it('are built in statements/ or scripts/ only', () => {
    const elsewhere = librarySources().filter(({ path }) => !isStatementFile(path));
    expect(elsewhere.flatMap((source) => unsafeParts(parse(source), looksLikeStatement))).toEqual([]);
  });

  it.each([
    'const sql = `SELECT * FROM t WHERE k = ${key}`;',
    "const sql = `UPDATE ${tables.locks} SET v = '${options.value}'`;",
    "const sql = 'DELETE FROM t WHERE k = ' + key;",
    'const lua = `redis.call("GET", "${key}")`;',
  ])('sees %s', (text) => expect(unsafeParts(sample(text), looksLikeStatement)).toHaveLength(1));

  it('accepts a validated table name', () => {
    const text = 'const sql = `SELECT * FROM ${tables.locks} JOIN ${table} WHERE k = ?`;';
    expect(unsafeParts(sample(text), looksLikeStatement)).toEqual([]);
  });
});

function isStatementFile(path: string): boolean {
  return /^packages\/[^/]+\/src\/(statements|scripts)\//.test(path);
}

function looksLikeStatement(text: string): boolean {
  return SQL.test(text) || LUA.test(text);
}

/** Values that are written into a text which `isStatement`, by a template or by `+`. */
function unsafeParts(file: ts.SourceFile, isStatement: (text: string) => boolean): string[] {
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

function isConcatenation(node: ts.Node): node is ts.BinaryExpression {
  return (
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.PlusToken &&
    [node.left, node.right].some(ts.isStringLiteralLike)
  );
}

function isSafe(part: ts.Expression): boolean {
  if (ts.isStringLiteralLike(part)) return true;
  const [name = ''] = part.getText().split('.');
  return (ts.isIdentifier(part) || ts.isPropertyAccessExpression(part)) && SAFE.includes(name);
}
