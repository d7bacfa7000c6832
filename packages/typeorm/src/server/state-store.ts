/**
 * State in a table of a server: the state port. A batch of writes is one statement, and every write in it is judged where
 * it is written; only a write that was not made costs a second statement, which says why.
 */
import type {
  Clock,
  StateChange,
  StatePage,
  StateStore,
  StateWrite,
  StoredEntry,
  Subscription,
  WriteAnswer,
} from '@guard/core';
import { count, integer, text, textOrNull, type Row } from '../row.js';
import type { StateStatements } from '../statements/postgres-state.js';
import { entryOf } from './entry-rows.js';
import { afterPrefix } from './prefix.js';
import { StateWatches } from './state-watch.js';
import type { Statements } from './statements.js';

/** How often rows that mean nothing any more are removed, a stretch at a time, by whoever writes. */
const HOUSEKEEPING_MS = 5_000;
/** Rows that one stretch looks at. */
const STRETCH = 256;
/** Writes whose values are longer together are more than one statement. One value is below it. */
const MAX_WRITE_LENGTH = 2_097_152;
/** A page ends early rather than hold more than this many bytes. */
const MAX_PAGE_BYTES = 4_194_304;

/** What a state store works with. */
export interface ServerStateParts {
  readonly name: string;
  readonly statements: Statements;
  readonly sql: StateStatements;
  readonly clock: Clock;
}

/** A state store on the pool of a data source. */
export class ServerState implements StateStore {
  readonly name: string;
  readonly traits = { maxBatch: 64, push: false, atomicBatch: true };

  readonly #statements: Statements;
  readonly #sql: StateStatements;
  readonly #clock: Clock;
  readonly #watches: StateWatches;
  #houseKeptMs: number;
  #walkedTo = '';

  constructor({ name, statements, sql, clock }: ServerStateParts) {
    this.name = name;
    this.#statements = statements;
    this.#sql = sql;
    this.#clock = clock;
    this.#watches = new StateWatches({ statements, sql: this.#sql, clock });
    this.#houseKeptMs = clock.now().monoMs;
  }

  async now(): Promise<number> {
    const [row] = await this.#statements.rows(this.#sql.now, []);
    return count(row!, 'now');
  }

  async read(keys: readonly string[]): Promise<readonly (StoredEntry | null)[]> {
    if (keys.length === 0) return [];
    const rows = await this.#statements.rows(this.#sql.read, [keys]);
    return rows.map(entryOf);
  }

  async write(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]> {
    const answers: WriteAnswer[] = [];
    for (const stretch of stretches(writes)) {
      try {
        answers.push(...(await this.#write(stretch)));
      } catch (cause) {
        answers.push(...stretch.map((): WriteAnswer => ({ status: 'failed', cause })));
      }
    }
    this.#keepHouse();
    return answers;
  }

  /** A cursor is the last key of the page before it, whether or not it is still there. */
  async scan(prefix: string, cursor: string | undefined, limit: number): Promise<StatePage> {
    const rows = await this.#statements.rows(this.#sql.scan, [
      ...[cursor ?? prefix, cursor ?? '', afterPrefix(prefix)],
      ...[limit + 1, MAX_PAGE_BYTES],
    ]);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const entries = page.map((row) => entryOf(row)!);
    if (last === undefined || count(last, 'found') <= page.length) return { entries };
    return { entries, cursor: text(last, 'key') };
  }

  watch(prefix: string, listener: (change: StateChange) => void): Promise<Subscription> {
    return this.#watches.open(prefix, listener);
  }

  async close(): Promise<void> {
    this.#watches.closeAll();
    this.#statements.close();
  }

  async #write(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]> {
    const columns = [
      writes.map(({ key }) => key),
      writes.map(({ value }) => value),
      writes.map(({ writeId }) => writeId),
      writes.map(({ fence }) => fence?.lock ?? null),
      writes.map(({ fence }) => (fence === undefined ? null : String(fence.token))),
      writes.map(({ expect }) => (typeof expect === 'object' ? versionOf(expect.version) : expect)),
      writes.map(({ ttl }) => (typeof ttl === 'number' ? String(Math.ceil(ttl * 1_000)) : ttl)),
    ];
    const rows = await this.#statements.rows(this.#sql.write, this.#statements.batch(columns));
    const written = new Map(
      rows
        .filter((row) => row['untouched'] !== 't')
        .map((row) => [text(row, 'key'), integer(row, 'version')]),
    );
    const others = writes.map(({ key }) => key).filter((key) => !written.has(key));
    const judged = others.length === 0 ? [] : await this.#statements.rows(this.#sql.judge, [others]);
    const there = new Map(judged.map((row) => [text(row, 'key'), row]));
    return writes.map((write) => {
      const version = written.get(write.key);
      if (version !== undefined) return { status: 'written', version: String(version) };
      return refusal(write, there.get(write.key));
    });
  }

  #keepHouse(): void {
    const nowMs = this.#clock.now().monoMs;
    if (nowMs - this.#houseKeptMs < HOUSEKEEPING_MS) return;
    this.#houseKeptMs = nowMs;
    // Any fault meets the next call too.
    this.#walk().catch(() => undefined);
  }

  async #walk(): Promise<void> {
    const [row] = await this.#statements.rows(this.#sql.keepHouse, [this.#walkedTo, STRETCH]);
    this.#walkedTo = row === undefined || integer(row, 'looked') < STRETCH ? '' : text(row, 'last');
  }
}

/** The writes in their order, as few statements as their length allows: a server takes no message without end. */
function stretches(writes: readonly StateWrite[]): readonly (readonly StateWrite[])[] {
  const all: StateWrite[][] = [];
  let length = Infinity;
  for (const write of writes) {
    const more = write.value?.length ?? 0;
    if (length + more > MAX_WRITE_LENGTH) {
      all.push([]);
      length = 0;
    }
    all.at(-1)!.push(write);
    length += more;
  }
  return all;
}

/** Why a write was not made, by the row that is there. */
function refusal({ key, expect, writeId, fence }: StateWrite, row: Row | undefined): WriteAnswer {
  const version = row === undefined ? null : String(integer(row, 'version'));
  if (row !== undefined && version !== null) {
    if (text(row, 'write_id') === writeId) return { status: 'written', version };
    if (fence !== undefined && textOrNull(row, 'fence_lock') === fence.lock) {
      const token = integer(row, 'fence_token');
      if (token > fence.token) return { status: 'fenced', token };
    }
  }
  if (expect === 'any') {
    return { status: 'failed', cause: new Error(`the row of ${key} changed while its write was judged`) };
  }
  return { status: 'conflict', version: row?.['present'] === 't' ? version : null };
}

/** A version as the statement compares it; what this store never answered matches none of its own. */
function versionOf(version: string): string {
  return /^\d{1,19}$/.test(version) ? version : '0';
}
