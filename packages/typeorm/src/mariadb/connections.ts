/**
 * The application's pool of connections to MariaDB. Statements are prepared and their results are read by Guard's own
 * rule: whatever the application set for escaping, big numbers or type casts, a token arrives exact to the last digit.
 */
import type { Row } from '../row.js';
import type { Connections, Taken } from '../server/statement-pool.js';
import type { TablesPlace } from '../schema-missing.js';
import type { Value } from '../server/statements.js';
import { GREETING, VERSION } from '../statements/mariadb-server.js';
import { breaks, explained, isForeign, isTransient } from './faults.js';
import { checkGreeting, type Greeting } from './greeting.js';

/** What a connection of mysql2 can do, as far as Guard uses it. */
export interface MysqlConnection {
  execute(options: MysqlQuery, done: (error: Error | null | undefined, result: unknown) => void): unknown;
  release(): void;
  destroy(): void;
}

/** A statement with its parameters, as mysql2 takes it. */
export interface MysqlQuery {
  readonly sql: string;
  readonly values: readonly (string | null)[];
  readonly rowsAsArray: boolean;
  readonly supportBigNumbers: boolean;
  readonly bigNumberStrings: boolean;
  readonly typeCast: (field: MysqlField, next: () => unknown) => unknown;
}

/** A column of a result. */
export interface MysqlField {
  readonly type: string;
}

/** The data source's driver, as far as Guard uses it. */
export interface MysqlDriver {
  /** One of the two is there once the data source is initialized. */
  readonly pool?: unknown;
  readonly poolCluster?: unknown;
  obtainMasterConnection(): Promise<MysqlConnection>;
}

/** A text as the driver takes it, with the numbers of its parameters in their order. */
interface Prepared {
  readonly sql: string;
  readonly numbers: readonly number[];
  /** Whether it is a block of statements, which tells what it did by a SELECT of its own. */
  readonly isBlock: boolean;
}

/** What the driver tells of a statement that answers no rows. */
interface Written {
  readonly affectedRows: number | string;
  /** The number that the statement gave to LAST_INSERT_ID. Text where no `number` is exact. */
  readonly insertId: number | string;
}

const INTEGERS = ['TINY', 'SHORT', 'INT24', 'LONG', 'LONGLONG'];
const OPTIONS = { rowsAsArray: false, supportBigNumbers: true, bigNumberStrings: true, typeCast: valueOf };

/** Connections to MariaDB. */
export class MysqlConnections implements Connections {
  readonly #driver: MysqlDriver;
  readonly #where: TablesPlace;
  readonly #prepared = new Map<string, Prepared>();
  readonly #greeted = new WeakSet<MysqlConnection>();
  /** Errors of blocks: nobody knows whether the transaction of one is over. */
  readonly #ofBlocks = new WeakSet<object>();

  constructor(driver: MysqlDriver, where: TablesPlace) {
    this.#driver = driver;
    this.#where = where;
  }

  isOpen(): boolean {
    return this.#driver.pool !== undefined || this.#driver.poolCluster !== undefined;
  }

  async take(): Promise<Taken> {
    const connection = await this.#driver.obtainMasterConnection();
    return {
      send: (text, values = []) =>
        this.#greeted.has(connection)
          ? this.#send(connection, text, values)
          : this.#greet(connection).then(() => this.#send(connection, text, values)),
      giveBack: (broken) => (broken ? connection.destroy() : connection.release()),
    };
  }

  /** One array of rows, as JSON. */
  batch(columns: readonly (readonly (string | null)[])[]): readonly Value[] {
    const [first = []] = columns;
    return [JSON.stringify(first.map((_, index) => columns.map((column) => column[index])))];
  }

  isTransient(error: unknown): boolean {
    return isTransient(error);
  }

  breaks(error: unknown): boolean {
    return breaks(error) || this.#ofBlocks.has(error as object);
  }

  explained(error: unknown): unknown {
    return explained(error, this.#where);
  }

  async #greet(connection: MysqlConnection): Promise<void> {
    const [row] = await this.#send(connection, GREETING, []).catch((error: unknown) => {
      if (isForeign(error)) return this.#send(connection, VERSION, []);
      throw error;
    });
    checkGreeting(row as Greeting, this.#where.place);
    this.#greeted.add(connection);
  }

  #send(connection: MysqlConnection, text: string, values: readonly Value[]): Promise<readonly Row[]> {
    const { sql, numbers, isBlock } = this.#prepare(text);
    const bound = numbers.map((number) => textOf(values[number - 1]!));
    const answer = new Promise<unknown>((resolve, reject) => {
      connection.execute({ ...OPTIONS, sql, values: bound }, (error, result) => {
        // No error is `null`, and in some versions `undefined`.
        if (error === null || error === undefined) resolve(result);
        else {
          if (isBlock) this.#ofBlocks.add(error);
          reject(error);
        }
      });
    });
    return answer.then((result) => rowsOf(result, isBlock));
  }

  /** The driver knows parameters by their place only; Guard's texts number them, as on Postgres. */
  #prepare(text: string): Prepared {
    let prepared = this.#prepared.get(text);
    if (prepared === undefined) {
      const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
      prepared = { sql: text.split(/\$\d+/).join('?'), numbers, isBlock: /\bBEGIN NOT ATOMIC\b/.test(text) };
      this.#prepared.set(text, prepared);
    }
    return prepared;
  }
}

/** Text for every parameter: the server reads numbers out of it exactly. */
function textOf(value: Value): string | null {
  if (value === null || typeof value === 'string') return value;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Integers as `bigint`, everything else as text. */
function valueOf({ type }: MysqlField, next: () => unknown): unknown {
  const value = next();
  if (value === null || value === undefined) return null;
  if (INTEGERS.includes(type)) return BigInt(value as string | number);
  return Buffer.isBuffer(value) ? value.toString('utf8') : value;
}

/**
 * The first rows of an answer. Several statements in one have an answer for each, and one for the whole. A statement that
 * wrote rows and answers none is one row with the token that it set.
 */
function rowsOf(result: unknown, isBlock: boolean): readonly Row[] {
  if (Array.isArray(result)) return (Array.isArray(result[0]) ? result[0] : result) as readonly Row[];
  if (isBlock) return [];
  const { affectedRows, insertId } = result as Written;
  return Number(affectedRows) === 0 ? [] : [{ token: exact(insertId) }];
}

function exact(number: number | string): bigint {
  if (typeof number === 'number' && !Number.isSafeInteger(number)) {
    throw new TypeError(`the driver rounded a number to ${number}`);
  }
  return BigInt(number);
}
