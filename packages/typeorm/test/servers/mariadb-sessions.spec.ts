/**
 * What sessions of MariaDB do to Guard: statements that are interrupted, connections that the application gives back
 * within a transaction, and settings, of which most do not matter and the others are refused.
 */
import { createGuard, type LockBackend, type RunStore, type StateStore, type StoredRun } from '@guard/core';
import {
  completeRun,
  createRun,
  ensureSchema,
  typeormLocks,
  typeormRuns,
  typeormState,
} from '@guard/typeorm';
import type { DataSource } from 'typeorm';
import { ask, claim, granted } from '../support/locking.js';
import { newDatabase, onMariadb, sessionsOn } from '../support/mariadb.js';
import type { Place } from '../support/place-on-server.js';
import { created, line, moved, NAMESPACE, record } from '../support/running.js';
import { wish } from '../support/store-cases.js';

const mariadb = onMariadb();
let place: Place;
let root: DataSource;
/** With one connection, which is used again for whatever comes next. */
let single: DataSource;
let stores: Stores;

beforeEach(async () => {
  place = await newDatabase(mariadb.server.url);
  root = await place.dataSource();
  await ensureSchema(root);
  single = await place.dataSource({ poolSize: 1 });
  stores = storesOn(single);
});

afterEach(() => place.close());

interface Stores {
  readonly locks: LockBackend;
  readonly state: StateStore;
  readonly runs: RunStore;
}

function storesOn(dataSource: DataSource): Stores {
  return { locks: typeormLocks(dataSource), state: typeormState(dataSource), runs: typeormRuns(dataSource) };
}

/** Each store has used the one connection before, and does not ask it for its settings any more. */
async function used(): Promise<void> {
  await stores.locks.inspect({ keys: ['ns/lock/k'] });
  await stores.state.read(['s/k']);
  await stores.runs.now();
}

const FOR_EVER = 'BEGIN DECLARE n INT DEFAULT 0; WHILE n < 1 DO SET n = 0; END WHILE; END; $&';
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const NODE = { id: 'n', label: 'n' };
const LOCK = { backend: 'b', key: 'ns/task/settlement', token: '1' };
const RUNNING = { state: 'running', lock: LOCK, node: NODE, startedAtMs: 5 } as const;
const FINISHED = { state: 'completed', finishedAtMs: 9, node: NODE, startedAtMs: 5 } as const;

async function sessionOf(dataSource: DataSource): Promise<string> {
  const [row]: { id: string }[] = await dataSource.query('SELECT CONNECTION_ID() AS id');
  return String(row!.id);
}

interface Connection {
  execute(options: { readonly sql: string }, done: (...answer: unknown[]) => void): unknown;
}

/**
 * Carries out a change of runs that goes on for ever between its two tables, and interrupts it there. It is between two
 * statements of its block then, where no handler hears of it.
 */
async function interrupted<T>(change: () => Promise<T>): Promise<T> {
  await used();
  const session = await sessionOf(single);
  const { driver } = single as unknown as { driver: { obtainMasterConnection(): Promise<Connection> } };
  const connection = await driver.obtainMasterConnection();
  const { execute } = connection;
  connection.execute = ({ sql, ...rest }, done) =>
    execute.call(
      connection,
      { ...rest, sql: sql.replace(/(INSERT INTO|DELETE FROM) `guard_run_event`/, FOR_EVER) },
      done,
    );
  (connection as unknown as { release(): void }).release();
  const changed = change();
  changed.catch(() => undefined);
  const begun = `SELECT 1 FROM information_schema.innodb_trx
    WHERE trx_mysql_thread_id = ${session} AND trx_rows_modified > 0`;
  // The server looks for it anew after a tenth of a second.
  while ((await root.query<unknown[]>(begun)).length === 0) await pause(150);
  await root.query(`KILL QUERY ${session}`);
  const answer = await Promise.allSettled([changed]);
  connection.execute = execute;
  return answer[0].status === 'fulfilled' ? answer[0].value : Promise.reject(answer[0].reason as Error);
}

const historyOf = async (runs: RunStore, key: string): Promise<readonly string[]> =>
  (await runs.events(NAMESPACE, { task: 'settlement', key })).map(({ what }) => what);

describe('a change of a run on MariaDB that is interrupted half-way', () => {
  let runs: RunStore;
  let stored: StoredRun;

  beforeEach(async () => {
    ({ runs } = stores);
    stored = await moved(runs, await created(runs, record('old')), RUNNING);
  });

  it('[S7] leaves no record without its history: to create one is to create it once, sent again or not', async () => {
    const event = line('asked');
    const answer = await interrupted(() => runs.create(NAMESPACE, record('k'), event));
    expect(answer).toMatchObject({ status: 'failed', cause: { errno: 1317 } });
    expect(await runs.get(NAMESPACE, { task: 'settlement', key: 'k' })).toBeNull();
    expect(await runs.create(NAMESPACE, record('k'), event)).toMatchObject({ status: 'created' });
    expect(await historyOf(runs, 'k')).toEqual(['asked']);
  });

  it('[S4] [S7] leaves no move without its history: the same one, sent again, is made', async () => {
    const { task, key, id, attempt, takeovers, trigger, createdAtMs, updatedAtMs } = stored.run;
    const next = {
      task,
      key,
      id,
      attempt,
      takeovers,
      trigger,
      createdAtMs,
      updatedAtMs,
      ...FINISHED,
    } as const;
    const event = line('ended');
    const move = (): ReturnType<RunStore['transition']> =>
      runs.transition(NAMESPACE, stored.version, next, event);
    expect(await interrupted(move)).toMatchObject({ status: 'failed', cause: { errno: 1317 } });
    expect(await move()).toMatchObject({ status: 'moved' });
    expect(await historyOf(runs, 'old')).toEqual(['moved', 'moved', 'ended']);
  });

  it('[S7] is removed with its history or not at all', async () => {
    await moved(runs, stored, FINISHED);
    const prune = (): Promise<number> =>
      runs.prune(NAMESPACE, { recordsBeforeMs: 10, keysBeforeMs: 10, limit: 10 });
    await expect(interrupted(prune)).rejects.toMatchObject({ errno: 1317 });
    expect(await historyOf(runs, 'old')).toHaveLength(3);
    expect(await prune()).toBe(1);
  });

  it('[S9] leaves the application no connection with a transaction that is not its own', async () => {
    await interrupted(() => runs.create(NAMESPACE, record('k'), line()));
    expect(await single.query('SELECT CAST(@@in_transaction AS CHAR) AS open')).toEqual([{ open: '0' }]);
  });

  it('[S1] grants no lock within its transaction, which nobody else would see', async () => {
    await interrupted(() => runs.create(NAMESPACE, record('k'), line()));
    const held = await granted(stores.locks, claim({ ttlMs: 30_000 }));
    expect(await root.query('SELECT claim FROM guard_lock')).toEqual([{ claim: held.claim }]);
    await root.query(`KILL ${await sessionOf(single)}`);
    expect((await ask(storesOn(root).locks, claim())).status).toBe('busy');
  });
});

describe('a connection that the application gave back within a transaction of MariaDB', () => {
  const begun: readonly (readonly [string, string])[] = [
    ['one that it began', 'START TRANSACTION'],
    ['one that any statement begins', 'SET SESSION autocommit = 0'],
  ];

  async function forget(begin: string): Promise<void> {
    await root.query('CREATE TABLE IF NOT EXISTS ledger (id int)');
    await used();
    const runner = single.createQueryRunner();
    await runner.query(begin);
    await runner.query('INSERT INTO ledger VALUES (1)');
    await runner.release();
  }

  it.each(begun)('[S1] [S9] is not used for a lock, nor is its work committed: %s', async (_, begin) => {
    await forget(begin);
    const { locks } = stores;
    const held = await granted(locks, claim({ ttlMs: 30_000 }));
    expect(await root.query('SELECT claim FROM guard_lock')).toEqual([{ claim: held.claim }]);
    expect(await root.query('SELECT * FROM ledger')).toEqual([]);
    await forget(begin);
    expect(await ask(locks, claim({ wait: true }))).toMatchObject({ status: 'queued' });
    await forget(begin);
    expect(await locks.renew([{ ...held, ttlMs: 30_000 }])).toMatchObject([{ status: 'renewed' }]);
    expect(await root.query('SELECT JSON_LENGTH(queue) AS waiting FROM guard_lock')).toMatchObject([
      { waiting: expect.anything() },
    ]);
  });

  it.each(begun)(
    '[S2] [S7] is not used for state and runs, nor is its work committed: %s',
    async (_, begin) => {
      const { state, runs } = stores;
      await forget(begin);
      expect(await state.write([wish('s/k', '1')])).toMatchObject([{ status: 'written' }]);
      await forget(begin);
      const stored = await created(runs, record('k'));
      await forget(begin);
      await moved(runs, stored, RUNNING);
      await forget(begin);
      await runs.putNode(NAMESPACE, { ...NODE, startedAtMs: 1, tasks: [] } as never, 60_000);
      expect(await root.query('SELECT * FROM ledger')).toEqual([]);
      expect(await root.query('SELECT value FROM guard_entry')).toEqual([{ value: '1' }]);
      expect(await historyOf(typeormRuns(root), 'k')).toHaveLength(2);
      expect(await typeormRuns(root).nodes(NAMESPACE)).toHaveLength(1);
    },
  );

  it('[S2] is not read on: what others wrote since is seen', async () => {
    const { state } = stores;
    await state.write([wish('s/k', '1')]);
    await forget('START TRANSACTION WITH CONSISTENT SNAPSHOT');
    await typeormState(root).write([wish('s/k', '2')]);
    expect(await state.read(['s/k'])).toMatchObject([{ value: '2' }]);
  });
});

describe('settings of sessions on MariaDB', () => {
  it.each([
    ['one row for each answer', 'SET SESSION sql_select_limit = 1'],
    ['no rows in an answer', 'SET SESSION sql_select_limit = 0'],
    ['small joins', 'SET SESSION max_join_size = 1, sql_big_selects = 0'],
    ['no time for a statement', 'SET SESSION max_statement_time = 0.0001'],
    ['no patience', 'SET SESSION innodb_lock_wait_timeout = 0'],
    ['a time zone', 'SET SESSION time_zone = "+13:00"'],
    ['another language', "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'"],
    ['other precedence', "SET SESSION sql_mode = 'HIGH_NOT_PRECEDENCE,SIMULTANEOUS_ASSIGNMENT'"],
  ])('[S4] [S7] do not matter to locks, state and runs: %s', async (_, statement) => {
    const dataSource = await sessionsOn(place, statement);
    const { locks, state, runs } = storesOn(dataSource);
    const claims = [1, 2, 3].map((n) => claim({ key: `ns/lock/${n}` }));
    const answers = await locks.acquire(claims);
    expect(answers.map(({ status }) => status)).toEqual(['granted', 'granted', 'granted']);
    const keys = claims.map(({ key }) => key);
    expect((await locks.inspect({ keys })).map(({ held }) => held)).toEqual([true, true, true]);
    await state.write(keys.map((key) => wish(key, '1')));
    expect((await state.read(keys)).map((entry) => entry?.value)).toEqual(['1', '1', '1']);
    for (const key of ['a', 'b', 'c']) {
      await moved(runs, await moved(runs, await created(runs, record(key)), RUNNING), FINISHED);
      expect(await historyOf(runs, key)).toHaveLength(3);
    }
    expect((await runs.list(NAMESPACE, { limit: 10 })).runs).toHaveLength(3);
    expect(await runs.prune(NAMESPACE, { recordsBeforeMs: 10, keysBeforeMs: 0, limit: 10 })).toBe(3);
    expect(await runs.prune(NAMESPACE, { recordsBeforeMs: 10, keysBeforeMs: 10, limit: 10 })).toBe(3);
  });

  it('[S7] do not keep a run from being known as completed in a transaction, with one row for each answer', async () => {
    const dataSource = await sessionsOn(place, 'SET SESSION sql_select_limit = 1');
    const guard = createGuard({
      locks: typeormLocks(dataSource),
      runs: typeormRuns(dataSource),
      namespace: 'ns',
    });
    const { status } = await guard.run('t', { key: 'k' }, () =>
      dataSource.transaction((manager) => completeRun(manager)),
    );
    expect(status).toBe('completed');
    await guard.close();
  });

  it.each([
    ['sql_mode ORACLE', "SET SESSION sql_mode = 'ORACLE'"],
    ['sql_mode EMPTY_STRING_IS_NULL', "SET SESSION sql_mode = 'STRICT_ALL_TABLES,EMPTY_STRING_IS_NULL'"],
    ['completion_type = NO_CHAIN', "SET SESSION completion_type = 'CHAIN'"],
    ['completion_type = NO_CHAIN', "SET SESSION completion_type = 'RELEASE'"],
    ['unique_checks = 1', 'SET SESSION unique_checks = 0'],
  ])('are refused where they would break a promise, with what to set: %s', async (what, statement) => {
    const dataSource = await sessionsOn(place, statement);
    const refused = { code: 'invalid-argument', message: expect.stringContaining(what) };
    expect(await ask(typeormLocks(dataSource), claim())).toMatchObject({ status: 'failed', cause: refused });
    await expect(typeormState(dataSource).read(['s/k'])).rejects.toMatchObject(refused);
    const answer = await typeormRuns(dataSource).create(NAMESPACE, record('k'), line());
    expect(answer).toMatchObject({ status: 'failed', cause: refused });
    expect(await root.query('SELECT 1 FROM guard_run')).toEqual([]);
  });

  it.each(['CHAIN', 'RELEASE'])(
    '[S1] [S7] may come to say %s later: a run is committed once and for all, and no lock is granted in what follows',
    async (completion) => {
      const { locks, runs } = stores;
      await used();
      await single.query(`SET SESSION completion_type = '${completion}'`);
      await moved(runs, await created(runs, record('k')), RUNNING);
      expect(await historyOf(typeormRuns(root), 'k')).toHaveLength(2);
      const held = await granted(locks, claim({ ttlMs: 30_000 }));
      expect(await root.query('SELECT claim FROM guard_lock')).toEqual([{ claim: held.claim }]);
    },
  );

  it('[S1] [S7] may chain the transaction of the application: what it asked for is committed, and no lock joins the next', async () => {
    const guard = createGuard({ ...stores, namespace: NAMESPACE });
    await used();
    await single.query("SET SESSION completion_type = 'CHAIN'");
    const made = await single.transaction((manager) => createRun(manager, guard, 't', { key: 'k' }));
    expect(made.created).toBe(true);
    expect(await root.query('SELECT run_key FROM guard_run')).toEqual([{ run_key: 'k' }]);
    const held = await granted(stores.locks, claim({ ttlMs: 30_000 }));
    expect(await root.query('SELECT claim FROM guard_lock')).toEqual([{ claim: held.claim }]);
    await guard.close();
  });
});
