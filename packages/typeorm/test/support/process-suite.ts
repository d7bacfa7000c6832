/**
 * Several processes on one database server: real ones, one of which is killed and one stopped past its lease. Each row
 * that they write is behind the fence, so the order of the rows shows whether anybody wrote who had lost the lock. Then
 * processes in other zones than the server, and a server that stands still without an event of a socket.
 */
import { once } from 'node:events';
import { createGuard } from '@guard/core';
import { SeededRandom } from '@guard/testing';
import type { SqlServer } from '@guard/testing/servers';
import { ensureSchema, typeormLocks, typeormState } from '@guard/typeorm';
import type { DataSource, DataSourceOptions } from 'typeorm';
import type { Tried } from '../process/hold-and-try-on-server.js';
import { endChildren, startChild } from './child.js';
import type { Place } from './place-on-server.js';

/** What differs between databases. */
export interface ProcessSuite {
  /** In another time zone than that of the epoch. */
  readonly server: () => SqlServer;
  readonly newPlace: () => Promise<Place>;
  /** Options of the data sources of the test and of its processes. */
  readonly options: (place: Place) => Partial<DataSourceOptions>;
  /** Makes the application's table. */
  readonly createHeld: string;
  /** Writes a key and a token into it. */
  readonly insert: string;
  /** Makes transactions of every session from now on serializable, or those of the server's own level again. */
  readonly setSerializable: (dataSource: DataSource, serializable: boolean) => Promise<unknown>;
  /** Settings of the zone that the driver has, beside its default. */
  readonly zones: readonly object[];
}

const KEYS = ['k0', 'k1', 'k2'];

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Describes the processes. */
export function describeProcesses(database: string, suite: ProcessSuite): void {
  const { seed } = new SeededRandom();
  afterEach(endChildren);

  it(`[S1] [S2] [L4] processes on ${database} write under growing tokens only, over a kill and a stop past the lease, and go on (GUARD_SEED=${seed})`, async () => {
    const place = await suite.newPlace();
    const own = suite.options(place);
    const dataSource = await place.dataSource(own);
    await ensureSchema(dataSource);
    await dataSource.query(suite.createHeld);
    const options = { ...own, url: place.url, poolSize: 4 };
    const children = [0, 1, 2, 3].map((n) =>
      startChild('hammer-on-server.ts', { options, keys: KEYS, insert: suite.insert, seed: seed + n }),
    );
    await Promise.all(children.map((child) => child.next()));
    await pause(1_000);
    const [killed, stopped, ...others] = children;
    killed!.signal('SIGKILL');
    stopped!.signal('SIGSTOP');
    await pause(2_500);
    const written = async (): Promise<{ name: string; token: string | number }[]> =>
      dataSource.query('SELECT name, token FROM held ORDER BY id');
    const before = (await written()).length;
    stopped!.signal('SIGCONT');
    await pause(1_000);
    for (const child of [stopped!, ...others]) child.tell('stop');
    await Promise.all([stopped!, ...others].map((child) => child.next()));
    const rows = await written();
    expect(rows.length).toBeGreaterThan(before);
    for (const key of KEYS) {
      const tokens = rows.filter(({ name }) => name === key).map(({ token }) => BigInt(token));
      expect(tokens.length).toBeGreaterThan(10);
      for (const [n, token] of tokens.entries()) if (n > 0) expect(token).toBeGreaterThan(tokens[n - 1]!);
    }
    await place.close();
  });

  it('[B90] [S1] [S7] no caller meets a failed serialization, and everything is counted, where transactions are serializable', async () => {
    const place = await suite.newPlace();
    const own = suite.options(place);
    const dataSource = await place.dataSource(own);
    await ensureSchema(dataSource);
    await suite.setSerializable(dataSource, true);
    try {
      const [locks, state] = [typeormLocks(dataSource), typeormState(dataSource)];
      const guard = createGuard({ locks, state, namespace: 'ns' });
      for (const key of KEYS) await guard.state.set(key, 0);
      const options = { ...own, url: place.url, poolSize: 4 };
      const input = { options, keys: KEYS, holdMs: 10, forMs: 3_000 };
      const children = [0, 1, 2, 3].map((n) =>
        startChild<number>('tally-on-server.ts', { ...input, seed: seed + n }),
      );
      await Promise.all(children.map((child) => child.next()));
      for (const child of children) child.tell('go');
      const grants = await Promise.all(children.map((child) => child.finish()));
      const counted = await Promise.all(KEYS.map((key) => guard.state.get<number>(key)));
      const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
      expect(sum(counted.map((entry) => entry!.value))).toBe(sum(grants));
      // Fifty in a second, half of it on a busy machine.
      expect(sum(grants)).toBeGreaterThan((3 * 50) / 2);
      await guard.close();
    } finally {
      await suite.setSerializable(dataSource, false);
      await place.close();
    }
  });

  it.each([{}, ...suite.zones])(
    '[B82] processes in other time zones than the server see the same end of a lock: options %j',
    async (zone) => {
      const place = await suite.newPlace();
      const own = suite.options(place);
      await ensureSchema(await place.dataSource(own));
      const input = { options: { ...own, url: place.url, ...zone }, key: 'zone', ttl: '2s' };
      const start = (what: string, TZ: string) =>
        startChild('hold-and-try-on-server.ts', { ...input, what }, { env: { TZ } });
      const holder = start('hold', 'UTC');
      expect(await holder.next()).toBe('held');
      const other = start('try', 'Asia/Tokyo');
      expect(await other.next()).toBe('tries');
      await pause(2_500);
      const killedAtMs = Date.now();
      await holder.kill();
      const tried = await other.next<Tried>();
      expect(tried.zone).toBe('Asia/Tokyo');
      expect(Math.min(...tried.livesForMs)).toBeGreaterThan(0);
      expect(Math.max(...tried.livesForMs)).toBeLessThanOrEqual(2_000);
      // Renewed for longer than its ttl, so it was not free before; and nobody waits an hour for it.
      expect(tried.gotAtMs).toBeGreaterThan(killedAtMs);
      expect(tried.gotAtMs - killedAtMs).toBeLessThan(2_000 + 3_000);
      await place.close();
    },
  );

  it('[B09] [L1] [S3] who holds a lock on a server that stands still is told in time by its own clock, and stays so', async () => {
    const place = await suite.newPlace();
    const dataSource = await place.dataSource(suite.options(place));
    await ensureSchema(dataSource);
    const guard = createGuard({ locks: typeormLocks(dataSource), namespace: 'ns' });
    const lock = await guard.acquire('m', { ttl: '2s' });
    await pause(1_000);
    await suite.server().pause();
    try {
      const stoppedAt = performance.now();
      await once(lock.signal, 'abort');
      // The last renewal that was confirmed began before the server stopped. A second more for a busy machine.
      expect(performance.now() - stoppedAt).toBeLessThan(2_000 + 1_000);
    } finally {
      await suite.server().resume();
    }
    await expect(lock.extend('2s')).rejects.toMatchObject({ code: 'lock-lost' });
    expect(lock.signal.aborted).toBe(true);
    expect(await (await guard.acquire('m', { ttl: '2s', wait: '20s' })).release()).toBe('released');
    await guard.close();
    await place.close();
  });
}
