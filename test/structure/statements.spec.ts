import { librarySources, parse, sample } from './support/source.js';
import {
  driversGivenAway,
  looksLikeStatement,
  patchedCalls,
  patchwork,
  textCalls,
  unsafeParts,
} from './support/statement-rules.js';

/**
 * Two words of Guard's own and a quoted key, which the driver of SQLite takes nowhere but in the text of a pragma; the
 * one place that puts a statement into what the driver of Postgres takes; and the application's own preparation of a
 * connection, which is no statement.
 */
const LOOKED_AT = [
  '`synchronous = ${synchronous}`',
  '`key = ${JSON.stringify(key)}`',
  'this.#query(text, values)',
  ': database; ',
];

const sources = librarySources().map((source) => ({ path: source.path, file: parse(source) }));
const isStatementFile = (path: string): boolean => /^packages\/[^/]+\/src\/(statements|scripts)\//.test(path);
const statementFiles = sources.filter(({ path }) => isStatementFile(path)).map(({ file }) => file);
const otherFiles = sources.filter(({ path }) => !isStatementFile(path)).map(({ file }) => file);
/** Servers of tests are no stores: nobody's values go there, and their words are those of programs. */
const withDrivers = sources
  .filter(({ path }) => !path.startsWith('packages/testing/'))
  .map(({ file }) => file);

describe('statements', () => {
  it('put nothing but safe identifiers into statement text', () => {
    expect(statementFiles.flatMap((file) => unsafeParts(file, () => true))).toEqual([]);
  });

  it('are built in statements/ or scripts/ only', () => {
    expect(otherFiles.flatMap((file) => unsafeParts(file, looksLikeStatement))).toEqual([]);
    expect(withDrivers.flatMap(textCalls)).toEqual([]);
  });

  it('are handed to a driver as they were written, whatever they begin with', () => {
    const found = withDrivers.flatMap(patchedCalls);
    expect(found.filter((problem) => !LOOKED_AT.some((part) => problem.includes(part)))).toEqual([]);
  });

  it('reach a driver by no other name of its functions', () => {
    expect(withDrivers.flatMap(driversGivenAway)).toEqual([]);
  });

  it.each([
    'const run = db.query.bind(db);',
    'const run = db.query;',
    'db.query.call(db, text)',
    'Reflect.apply(db.query, db, [text])',
    "const run = db['exec'];",
    "const verb = 'query'; const run = db[verb];",
    "const run = db[many ? 'query' : 'execute'];",
    "const verb = 'query'; db[verb].call(db, text)",
    'const { query: run } = db;',
    "const { 'query': run } = db;",
    'const { [verb]: run } = db;',
    "Reflect.get(db, 'query')",
  ])('sees %s', (text) => expect(driversGivenAway(sample(text))).toHaveLength(1));

  it('are not made by putting texts together, and take no columns from outside of their file', () => {
    expect(statementFiles.flatMap(patchwork)).toEqual([]);
  });

  it.each([
    'db.query(`select * from t where k = ${key}`)',
    "db['query'](`x = ${key}`)",
    'db[`query`](`x = ${key}`)',
    'client[verb](`x = ${key}`)',
    'client[verb]!(`x = ${key}`)',
    '(client[verb])(`x = ${key}`)',
    'client?.[verb]?.(`x = ${key}`)',
    "db['que' + 'ry'](`x = ${key}`)",
    "db[verbs.read]('x = ' + key)",
    'const text = `x = ${key}`; db[verb](text, [])',
    "client.pipeline([['eval', `return ${key}`, 0]])",
    "client.call('EVAL', 'return ' + key, 0)",
    "client.sendCommand(['eval_ro', `return ${key}`])",
    '(db.query)(`x = ${key}`)',
    'db.query!(`x = ${key}`)',
    'db?.query?.(`x = ${key}`)',
    'db.execute(`x = ${key}`)',
    "db.prepare('select * from t where k = ' + key)",
    'database.exec(`drop table ${name}`)',
    'client.eval(`return ${script}`, 0)',
    'const { query } = db; query(`x = ${key}`)',
    'const text = `x = ${key}`; db.query(text)',
    "let text = 'x'; text += key; db.query(text)",
    'db.query(head + key)',
    "db.query(['x', key].join(''))",
    "db.query(format('x', key))",
    "db.query('x ?'.replace('?', key))",
    'db.query({ text: `x = ${key}` })',
    'function by(key: string) { return `x = ${key}`; } db.query(by(key))',
    "builder.where(`k = '${key}'`)",
    "builder.where(() => `k = '${key}'`)",
    "const text = `k = '${key}'`; builder.where(text)",
    "builder.set({ v: () => `v || '${key}'` })",
    "builder.set({ v() { return 'v || ' + key; } })",
    "builder.values([{ k: 1, v: () => 'v || ' + key }])",
    "builder.select(`max('${key}')`)",
    "builder.select(['k', `max('${key}')`])",
    "builder.leftJoin('t', 't', `t.k = '${key}'`)",
    "builder.leftJoinAndSelect('t', 't', 't.k = ' + key)",
    "repository.find({ where: { k: Raw((alias) => `${alias} = '${key}'`) } })",
    "client.script('LOAD', `return ${key}`)",
    "client.call('SCRIPT', 'LOAD', `return ${key}`)",
    "client.sendCommand(['FUNCTION', 'LOAD', 'return ' + key])",
    'client.scriptLoad(`return ${key}`)',
    "client.defineCommand('x', { lua: `return ${key}` })",
    'defineScript({ NUMBER_OF_KEYS: 1, SCRIPT: `return ${key}` })',
  ])('sees %s in a call', (text) => expect(patchedCalls(sample(text))).toHaveLength(1));

  it.each([
    'db.query(`SELECT * FROM ${tables.run} WHERE k = ?`, [key])',
    'db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)',
    'breaker.execute(() => call(key))',
    'client[by](script.sha, call)',
    'handlers[kind](event)',
    'stores[kind]()',
    "client.pipeline([['eval', script.text, 0]])",
    'db.query(sent.statement, sent.parameters)',
    "import { read } from './statements/read.js'; db.query(read(tables), [key])",
    "builder.where('k = :key', { key })",
    "builder.where('k = :key', { key: `${first}/${second}` })",
    "builder.set({ v: () => 'v + 1', text: `${first}/${second}` })",
    'queues.set(`${first}/${second}`, () => `${first}`)',
    "client.script('LOAD', script.text)",
    "client.defineCommand('x', { lua: SCRIPT })",
    "const text = many ? 'SELECT 1' : 'SELECT 2'; db.query(text)",
  ])('accepts %s in a call', (text) => expect(patchedCalls(sample(text))).toEqual([]));

  it.each([
    "sql += ' WHERE k = 1';",
    'const sql = start.concat(key);',
    'const sql = START + key;',
    "const sql = [START, key].join('');",
    "const sql = SELECT.replace('?', key);",
    "const sql = SELECT.replaceAll('?', () => key);",
    'export function read(columns: { key: string }): string { return columns.key; }',
  ])('sees %s in a file of statements', (text) => expect(patchwork(sample(text))).toHaveLength(1));

  it.each([
    'const sql = `SELECT * FROM t WHERE k = ${key}`;',
    'const sql = `select * from t where k = ${key}`;',
    'const sql = `-- read\n (SELECT * FROM t WHERE k = ${key})`;',
    "const sql = `UPDATE ${tables.locks} SET v = '${options.value}'`;",
    "const sql = 'DELETE FROM t WHERE k = ' + key;",
    'const lua = `redis.call("GET", "${key}")`;',
  ])('sees %s', (text) => expect(unsafeParts(sample(text), looksLikeStatement)).toHaveLength(1));

  it.each(['const { [AROUND]: around } = given;', 'const { key: name } = lock;', 'const x = xs[n];'])(
    'accepts %s',
    (text) => expect(driversGivenAway(sample(text))).toEqual([]),
  );

  it.each([
    "const sql = ['SELECT * FROM t WHERE k =', key].join(' ');",
    "const sql = 'select * from t where k = ?'.replace('?', key);",
    "const sql = format('DELETE FROM t WHERE k = %L', key);",
  ])('sees %s', (text) => expect(textCalls(sample(text))).toHaveLength(1));

  it('accepts a validated table name', () => {
    const text = 'const sql = `SELECT * FROM ${tables.locks} JOIN ${table} WHERE k = ?`;';
    expect(unsafeParts(sample(text), looksLikeStatement)).toEqual([]);
  });
});
