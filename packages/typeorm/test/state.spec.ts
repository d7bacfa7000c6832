/**
 * What state promises on SQLite beyond the port: on the disk before it is answered, versions of one counter for the
 * file, watches that read one number while nothing happens and catch up after any pause.
 */
import { typeormState } from '@guard/typeorm';
import { FENCE_KEPT_MS, type StateChange, type StateStore, type StateWrite } from '@guard/core';
import { VirtualClock } from '@guard/testing';
import type { DataSource } from 'typeorm';
import { shell, watchedDriver } from './support/drivers.js';
import { heldBy, newPlace, type Place } from './support/place.js';

jest.setTimeout(60_000);

let place: Place;
let clock: VirtualClock;
let opened: StateStore[];
let writes = 0;

beforeEach(() => {
  place = newPlace();
  clock = new VirtualClock();
  opened = [];
});

afterEach(async () => {
  for (const state of opened) await state.close();
  place.remove();
});

function open(dataSource: DataSource = place.dataSource()): StateStore {
  const state = typeormState(dataSource, heldBy(clock));
  opened.push(state);
  return state;
}

async function put(state: StateStore, key: string, value: string | null, over: Partial<StateWrite> = {}) {
  writes += 1;
  const [answer] = await state.write([
    { key, value, expect: 'any', writeId: `write ${writes}`, ttl: 'none', ...over },
  ]);
  return answer!;
}

function byHand<T>(work: (database: ReturnType<typeof shell>) => T): T {
  const database = shell(`${place.file}-guard`);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('state', () => {
  it('is on the disk before it is answered, and locks beside it are not held up by that', async () => {
    const seen: string[] = [];
    const state = open(place.dataSource({ driver: watchedDriver((text) => seen.push(text)) }));
    await put(state, 'k', '1');
    expect(seen).toContain('PRAGMA synchronous = FULL');
    const begun = seen.lastIndexOf('BEGIN IMMEDIATE');
    expect(seen.slice(begun).filter((text) => text === 'COMMIT')).toHaveLength(1);
  });

  it('[B180] has versions of one counter, which goes on over everything that was removed by hand', async () => {
    const state = open();
    const first = await put(state, 'k', '1');
    byHand((database) => database.exec('DELETE FROM guard_entry'));
    const second = await put(state, 'k', '2');
    if (first.status !== 'written' || second.status !== 'written') throw new Error('both are written');
    expect(BigInt(second.version)).toBeGreaterThan(BigInt(first.version));
    clock.shiftWall(-86_400_000);
    const third = await put(state, 'other', '3');
    expect(third.status === 'written' && BigInt(third.version) > BigInt(second.version)).toBe(true);
  });

  it('[B95] forgets what is over, bit by bit, and keeps what lives, and the fence of what went for an hour', async () => {
    const state = open();
    for (let n = 0; n < 200; n += 1) await put(state, `k${n}`, '1', { ttl: 1_000 });
    for (let n = 0; n < 100; n += 1) await put(state, `k${n}`, null);
    await put(state, 'stays', '1');
    await put(state, 'fenced', '1', { fence: { lock: 'l', token: 9n }, ttl: 1_000 });
    await clock.advance(FENCE_KEPT_MS);
    expect(await put(state, 'fenced', '2', { fence: { lock: 'l', token: 8n } })).toMatchObject({
      status: 'fenced',
    });
    for (let round = 0; round < 12; round += 1) {
      await clock.advance(5_000);
      await put(state, 'lives', '1', { ttl: 60_000 });
    }
    const left = byHand((database) =>
      database.prepare('SELECT key FROM guard_entry ORDER BY key').pluck().all(),
    );
    expect(left).toEqual(['lives', 'stays']);
  });

  it('[S1] of another boot of the machine expires after this process has seen it for its whole time', async () => {
    const state = open();
    await put(state, 'k', '1', { ttl: 10_000 });
    byHand((database) => database.exec("UPDATE guard_entry SET boot = 'another'"));
    await clock.advance(60_000);
    expect(await state.read(['k'])).toMatchObject([{ expiresInMs: 10_000 }]);
    await clock.advance(9_999);
    expect(await state.read(['k'])).toMatchObject([{ expiresInMs: 1 }]);
    await clock.advance(1);
    expect(await state.read(['k'])).toEqual([null]);
    expect(await put(state, 'k', '2', { expect: 'absent' })).toMatchObject({ status: 'written' });
  });
});

describe('a watch', () => {
  async function watched(state: StateStore, prefix: string): Promise<StateChange[]> {
    const heard: StateChange[] = [];
    await state.watch(prefix, (change) => heard.push(change));
    return heard;
  }

  it('reads one number while nothing happens, and only while anybody watches', async () => {
    const seen: string[] = [];
    const state = open(place.dataSource({ driver: watchedDriver((text) => seen.push(text)) }));
    const watch = await state.watch('', () => undefined);
    seen.length = 0;
    await clock.advance(1_000);
    expect(seen).toHaveLength(10);
    expect(new Set(seen)).toEqual(new Set(['SELECT last FROM guard_version WHERE id = 1']));
    await watch.close();
    expect(clock.pendingTimers.total).toBe(0);
  });

  it('[L5] keeps no process alive', async () => {
    await watched(open(), '');
    expect(clock.pendingTimers).toMatchObject({ total: 1, ref: 0 });
  });

  it('hears of what happened while the file could not be read', async () => {
    const [state, other] = [open(), open()];
    const heard = await watched(state, 'a/');
    await put(other, 'a/k', '1');
    byHand((database) => database.exec('ALTER TABLE guard_entry RENAME TO away'));
    await clock.advance(1_000);
    byHand((database) => database.exec('ALTER TABLE away RENAME TO guard_entry'));
    await put(other, 'b/k', '1');
    await clock.advance(100);
    expect(heard).toMatchObject([{ key: 'a/k', entry: { value: '1' } }]);
  });

  it('of a process that was stopped for long lists again: it hears of deletes whose rows are gone', async () => {
    const [state, other] = [open(), open()];
    await put(other, 'a/goes', '1');
    await put(other, 'a/stays', '1');
    const heard = await watched(state, 'a/');
    await put(other, 'a/goes', null);
    await put(other, 'a/comes', '1');
    byHand((database) => database.exec('DELETE FROM guard_entry WHERE value IS NULL'));
    clock.block(FENCE_KEPT_MS);
    await clock.advance(100);
    await turn();
    const told = new Map(heard.map(({ key, entry }) => [key, entry?.value ?? null]));
    expect(told.get('a/goes')).toBeNull();
    expect(told.get('a/comes')).toBe('1');
  });

  it('goes on once, not twice, when the last one is closed and another is opened at once', async () => {
    const state = open();
    const first = await state.watch('', () => undefined);
    await clock.advance(50);
    await first.close();
    const heard = await watched(state, '');
    await put(state, 'k', '1');
    await clock.advance(300);
    expect(heard).toHaveLength(1);
    expect(clock.pendingTimers.total).toBe(1);
  });
});
