/** Messages of Postgres through PgBouncer, which lends a session for as long as a client is there, or for a transaction. */
import { createGuard } from '@guard/core';
import { ensureSchema, typeormLocks } from '@guard/typeorm';
import { startPgbouncer, type PgbouncerOptions } from '@guard/testing/servers';
import type { DataSource } from 'typeorm';
import { fastClock } from '../support/fast-clock.js';
import { ask, claim, granted, release } from '../support/locking.js';
import type { Place } from '../support/place-on-server.js';
import { newSchema, onPostgres } from '../support/postgres.js';

const postgres = onPostgres();
let place: Place;
let opened: (() => Promise<unknown>)[];
beforeEach(async () => {
  opened = [];
  place = await newSchema(postgres.server.url);
  await ensureSchema(await place.dataSource());
});
afterEach(async () => {
  for (const close of opened.reverse()) await close();
  await place.close();
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Data sources on a pooler of their own. */
async function behind(options: Omit<PgbouncerOptions, 'postgres'>): Promise<() => Promise<DataSource>> {
  const pooler = await startPgbouncer({ ...options, postgres: postgres.server });
  opened.push(() => pooler.stop());
  const url = new URL(place.url);
  [url.hostname, url.port] = [new URL(pooler.url).hostname, new URL(pooler.url).port];
  return async () => {
    const dataSource = await place.dataSource({ url: url.href });
    opened.push(() => dataSource.destroy());
    return dataSource;
  };
}

describe.each([1, 5])('a pooler in transaction mode with sessions: %i', (poolSize) => {
  it('[L2] has no session left that listens, and is told of once, however long somebody waits', async () => {
    const source = await behind({ poolSize });
    const listening = async (): Promise<string[]> => {
      const db = await source();
      const asked = Array.from({ length: poolSize }, () =>
        db.query('SELECT pg_listening_channels() FROM pg_sleep(0.05)'),
      );
      return (await Promise.all(asked)).flat() as string[];
    };
    const locks = typeormLocks(await source(), { clock: fastClock });
    opened.push(() => locks.close());
    const guard = createGuard({ locks, namespace: 'ns' });
    opened.push(() => guard.close());
    const told: unknown[] = [];
    guard.on('error', ({ during, error }) => told.push([during, error]));
    const held = await guard.acquire('k', { ttl: '30s' });
    const waiting = guard.withLock('k', { wait: '30s' }, () => 'served');
    await pause(2_500);
    expect(await listening()).toEqual([]);
    await held.release();
    expect(await waiting).toBe('served');
    const keptBack = {
      code: 'unavailable',
      message: expect.stringContaining('a pooler in transaction mode'),
    };
    expect(told).toEqual([['subscribing to notices', expect.objectContaining(keptBack)]]);
  });
});

it('[L2] messages come through a pooler in session mode', async () => {
  const source = await behind({ poolMode: 'session' });
  const locks = typeormLocks(await source());
  opened.push(() => locks.close());
  const held = await granted(locks);
  const wanted = claim({ wait: true, ticketTtlMs: 30_000 });
  await ask(locks, wanted);
  const heard: unknown[] = [];
  const stream = await locks.subscribe!(wanted.session, (notice) => heard.push(notice));
  opened.push(() => stream.close());
  await release(locks, held);
  while (heard.length === 0) await pause(5);
  expect(heard).toEqual([expect.objectContaining({ type: 'granted', claim: wanted.id })]);
});
