/** What every statement of Guard's on MariaDB brings along, whichever file it stands in. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { mariadbTables } from '../src/mariadb/names.js';
import { tableNames } from '../src/tables.js';

const FOLDER = join(__dirname, '../src/statements');
/** Pieces are no statements; what makes tables, and what is part of a transaction, has the application's own settings. */
const OTHERS = ['mariadb-pieces.ts', 'mariadb-tables.ts', 'mariadb-transaction.ts'];
/** Asked of connections that nothing is known about yet, or within a transaction of the application. */
const ANYWHERE = ['GREETING', 'ASK_TIME_WITHIN'];
/** For servers that are refused whatever they answer. */
const FOREIGN = ['VERSION'];

const files = readdirSync(FOLDER).filter((file) => /^mariadb-.*\.ts$/.test(file));

/** All texts of a file, with their names. */
async function textsOf(file: string): Promise<readonly (readonly [name: string, text: string])[]> {
  const tables = mariadbTables(tableNames());
  const exported = (await import(join(FOLDER, file))) as Record<string, unknown>;
  return Object.entries(exported).flatMap(([name, value]) =>
    named(name, typeof value === 'function' ? value(tables) : value),
  );
}

function named(name: string, value: unknown): readonly (readonly [string, string])[] {
  if (typeof value === 'string') return [[name, value]];
  return Object.entries(value as object).flatMap(([inner, text]) => named(inner, text));
}

const settled = files.filter((file) => !OTHERS.includes(file));

/** The texts of a file, but for these. */
async function textsBut(
  file: string,
  names: readonly string[],
): Promise<readonly (readonly [string, string])[]> {
  return (await textsOf(file)).filter(([name]) => !names.includes(name));
}

describe('the statements on MariaDB', () => {
  it('are those of locks, state and runs, and what a server is asked before them', () => {
    expect(settled.map((file) => file.replace(/^mariadb-(.*)\.ts$/, '$1'))).toEqual([
      ...['locks', 'runs', 'schema', 'server', 'settle', 'state'],
    ]);
  });

  it.each(settled)('[S6] bring a limit of time: %s', async (file) => {
    for (const [name, text] of await textsBut(file, FOREIGN)) {
      expect([name, text]).toEqual([
        name,
        expect.stringMatching(/^\s*(\/\*M! )?SET STATEMENT [^;]*max_statement_time = 5\b[^;]* FOR\b/),
      ]);
    }
  });

  it.each(settled)('[S2] [S7] bring zone, mode and patience: %s', async (file) => {
    for (const [name, text] of await textsBut(file, [...FOREIGN, 'GREETING'])) {
      for (const setting of [
        ...['time_zone = ', "sql_mode = 'STRICT_ALL_TABLES'", 'innodb_lock_wait_timeout = 5'],
      ]) {
        expect([name, text.split(' FOR', 1)[0]]).toEqual([name, expect.stringContaining(setting)]);
      }
    }
  });

  it.each(settled)('[S1] [S7] [S9] refuse a connection that has a transaction open: %s', async (file) => {
    for (const [name, text] of await textsBut(file, [...FOREIGN, ...ANYWHERE])) {
      expect([name, text]).toEqual([name, expect.stringContaining('IF(@@autocommit > @@in_transaction,')]);
    }
  });

  it.each(settled)('[S7] answer all rows that there are, where they may be many: %s', async (file) => {
    const texts = await textsBut(file, [...FOREIGN, ...ANYWHERE]);
    const many = texts.filter(([, text]) => /\bFOR\s+(SELECT|INSERT\b.*\bSELECT)\b/s.test(text));
    for (const [name, text] of many) {
      expect([name, text]).toEqual([
        name,
        expect.stringContaining(
          'sql_select_limit = 18446744073709551615, max_join_size = 18446744073709551615',
        ),
      ]);
    }
  });

  it.each([...settled, 'mariadb-transaction.ts'])(
    '[S1] [S7] end a transaction as they mean it, whatever a COMMIT means to the session: %s',
    async (file) => {
      for (const [name, text] of await textsOf(file)) {
        const ends = text.match(/\b(?:COMMIT|ROLLBACK)\b[^;]*/g) ?? [];
        const right = ends.filter((end) => /^(?:COMMIT|ROLLBACK) AND NO CHAIN NO RELEASE$/.test(end));
        expect([name, right]).toEqual([name, ends]);
      }
    },
  );
});
