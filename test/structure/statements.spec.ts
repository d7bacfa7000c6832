import ts from 'typescript';
import { everyNode, librarySources, parse, sample, where } from './support/source.js';

/**
 * Names whose value may stand in the text of a statement: identifiers of tables, columns and channels that were validated
 * when the adapter was made, and other pieces of statement text that are constants. Everything else is a parameter.
 */
const SAFE = ['table', 'tables', 'column', 'columns', 'schema', 'channel'];
/** What the driver of SQLite takes nowhere but in the text of a pragma: two words of Guard's own, and a quoted key. */
const IN_A_PRAGMA = ['`synchronous = ${synchronous}`', '`key = ${JSON.stringify(key)}`'];
/** Methods of drivers whose first argument is a statement. */
const DRIVER_CALLS = ['query', 'prepare', 'exec', 'pragma', 'eval'];
const CONSTANT = /^[A-Z][A-Z0-9_]*$/;
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

  it('are handed to a driver as they were written, whatever they begin with', () => {
    const found = librarySources().flatMap((source) => patchedCalls(parse(source)));
    expect(found.filter((problem) => !IN_A_PRAGMA.some((part) => problem.includes(part)))).toEqual([]);
  });

  it('are not made by putting texts together, and take no columns from outside of their file', () => {
    const files = librarySources().filter(({ path }) => isStatementFile(path));
    expect(files.flatMap((source) => patchwork(parse(source)))).toEqual([]);
  });

  it.each([
    'db.query(`select * from t where k = ${key}`)',
    "db.prepare('select * from t where k = ' + key)",
    'database.exec(`drop table ${name}`)',
    'client.eval(`return ${script}`, 0)',
  ])('sees %s in a call', (text) => expect(patchedCalls(sample(text))).toHaveLength(1));

  it.each([
    "sql += ' WHERE k = 1';",
    'const sql = start.concat(key);',
    "const sql = SELECT.replace('?', key);",
    "const sql = SELECT.replaceAll('?', () => key);",
    'export function read(columns: { key: string }): string { return columns.key; }',
  ])('sees %s in a file of statements', (text) => expect(patchwork(sample(text))).toHaveLength(1));

  it.each([
    'db.query(`SELECT * FROM ${tables.run} WHERE k = ?`, [key])',
    'db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)',
  ])('accepts %s in a call', (text) => expect(patchedCalls(sample(text))).toEqual([]));

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

/** Calls of a driver whose statement has a value in its text. */
function patchedCalls(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return;
    const [statement] = node.arguments;
    if (statement === undefined || !DRIVER_CALLS.includes(node.expression.name.text)) return;
    const parts = ts.isTemplateExpression(statement)
      ? statement.templateSpans.map((span) => span.expression)
      : isConcatenation(statement)
        ? [statement.left, statement.right]
        : [];
    if (parts.every((part) => isSafe(part) || CONSTANT.test(part.getText(file)))) return;
    problems.push(`${where(file, node)}: ${statement.getText(file)}; make it a parameter`);
  });
  return problems;
}

/** Ways to make a text that no template shows. */
function patchwork(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    const grows = ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusEqualsToken;
    if (grows || isTextCall(node) || takesColumns(node)) {
      problems.push(
        `${where(file, node)}: ${node.getText(file).split('\n')[0]}; write the statement as it is`,
      );
    }
  });
  return problems;
}

function isTextCall(node: ts.Node): boolean {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
  const { text } = node.expression.name;
  if (text === 'concat') return true;
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
