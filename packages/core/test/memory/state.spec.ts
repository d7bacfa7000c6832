/**
 * The state port, sentence by sentence, on the store that is its executable specification.
 */
import { FENCE_KEPT_MS, memoryState, type StateChange, type StateStore, type StateWrite } from '@guard/core';
import { SeededRandom, VirtualClock } from '@guard/testing';

const KEY = 'ns/state/k';

let clock: VirtualClock;
let state: StateStore;
let ids: number;

beforeEach(() => {
  clock = new VirtualClock();
  state = memoryState({ clock });
  ids = 0;
});

function op(over: Partial<StateWrite> = {}): StateWrite {
  ids += 1;
  return { key: KEY, value: `"${ids}"`, expect: 'any', writeId: `w${ids}`, ttl: 'keep', ...over };
}

async function send(wanted: StateWrite) {
  return (await state.write([wanted]))[0]!;
}

async function written(wanted: StateWrite): Promise<string> {
  const answer = await send(wanted);
  if (answer.status !== 'written') throw new Error(`expected a write, got ${answer.status}`);
  return answer.version;
}

async function get(key = KEY) {
  return (await state.read([key]))[0]!;
}

async function keysOf(prefix: string, limit: number): Promise<string[]> {
  const keys: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await state.scan(prefix, cursor, limit);
    expect(page.entries.length).toBeLessThanOrEqual(limit);
    keys.push(...page.entries.map(({ key }) => key));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return keys;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a write', () => {
  it('is applied only where its expectation holds, and else says what is there', async () => {
    expect(await send(op({ expect: { version: 'x' } }))).toEqual({ status: 'conflict', version: null });
    const first = await written(op({ expect: 'absent', value: '1' }));
    expect(await send(op({ expect: 'absent' }))).toEqual({ status: 'conflict', version: first });
    const second = await written(op({ expect: { version: first }, value: '2' }));
    expect(await send(op({ expect: { version: first } }))).toEqual({ status: 'conflict', version: second });
    expect(await get()).toEqual({ key: KEY, value: '2', version: second });
    await written(op({ expect: { version: second }, value: null }));
    expect(await get()).toBeNull();
  });

  it('never gets a version again, over deletes, expiry and a new store', async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 10; round += 1) {
      seen.add(await written(op({ ttl: 10 })));
      if (round % 2 === 0) seen.add(await written(op({ value: null })));
      else await clock.advance(10);
    }
    await clock.advance(1);
    state = memoryState({ clock });
    seen.add(await written(op()));
    expect(seen.size).toBe(16);
  });

  it.each<[string, Partial<StateWrite>]>([
    ['a create', { expect: 'absent' }],
    ['a delete', { value: null }],
    ['an entry that has expired since', { expect: 'absent', ttl: 10 }],
  ])('[S4] recognises its own earlier sending: %s', async (_name, over) => {
    if (over.value === null) await written(op());
    const wanted = op(over);
    const version = await written(wanted);
    await clock.advance(20);
    expect(await send(wanted)).toEqual({ status: 'written', version });
    expect(await send({ ...wanted, expect: { version: 'x' } })).toEqual({ status: 'written', version });
  });

  it('[S4] is a conflict where its entry has moved on since', async () => {
    const first = op({ expect: 'absent' });
    await written(first);
    const second = await written(op());
    expect(await send(first)).toEqual({ status: 'conflict', version: second });
  });

  it('of a batch stands for itself, and the answers are in the order of the writes', async () => {
    await written(op({ key: 'b' }));
    const answers = await state.write(['a', 'b', 'c'].map((key) => op({ key, expect: 'absent' })));
    expect(answers.map(({ status }) => status)).toEqual(['written', 'conflict', 'written']);
    expect((await state.read(['c', 'x', 'a'])).map((entry) => entry?.key)).toEqual(['c', undefined, 'a']);
  });
});

describe('a time to live', () => {
  it('ends the entry by the monotonic clock', async () => {
    await written(op({ ttl: 100 }));
    clock.shiftWall(1_000);
    await clock.advance(99);
    expect(await get()).toMatchObject({ expiresInMs: 1 });
    await clock.advance(1);
    expect(await get()).toBeNull();
    expect(await send(op({ expect: 'absent' }))).toMatchObject({ status: 'written' });
  });

  it('is kept, set anew or taken off by the next write', async () => {
    await written(op({ ttl: 100 }));
    await clock.advance(40);
    await written(op({ ttl: 'keep' }));
    expect(await get()).toMatchObject({ expiresInMs: 60 });
    await written(op({ ttl: 500 }));
    expect(await get()).toMatchObject({ expiresInMs: 500 });
    await written(op({ ttl: 'none' }));
    expect(await get()).not.toHaveProperty('expiresInMs');
  });

  it('is not inherited from an entry that is gone', async () => {
    await written(op({ ttl: 100 }));
    await written(op({ value: null }));
    await written(op({ ttl: 'keep' }));
    expect(await get()).not.toHaveProperty('expiresInMs');
  });
});

describe('a fence', () => {
  const under = (token: bigint, lock = 'ns/lock/a') => ({ fence: { lock, token } });

  it('refuses the write of an older holder of the same lock, and of no other', async () => {
    await written(op(under(5n)));
    expect(await send(op(under(4n)))).toEqual({ status: 'fenced', token: 5n });
    expect(await send(op(under(5n)))).toMatchObject({ status: 'written' });
    expect(await send(op(under(1n, 'ns/lock/b')))).toMatchObject({ status: 'written' });
  });

  it.each(['a write without a fence', 'a delete', 'an expiry', 'a delete of what was never there'])(
    'is kept over %s',
    async (what) => {
      if (what !== 'a delete of what was never there') await written(op({ ...under(5n), ttl: 100 }));
      if (what === 'a write without a fence') await written(op({ ttl: 'none' }));
      if (what === 'a delete') await written(op({ value: null }));
      if (what === 'a delete of what was never there') await written(op({ value: null, ...under(5n) }));
      await clock.advance(100);
      expect(await send(op({ expect: 'any', ...under(4n) }))).toEqual({ status: 'fenced', token: 5n });
      expect(await send(op({ expect: 'any', ...under(6n) }))).toMatchObject({ status: 'written' });
    },
  );

  it('of a deleted entry is kept for an hour', async () => {
    await written(op({ value: null, ...under(5n) }));
    await clock.advance(FENCE_KEPT_MS - 1);
    expect(await send(op(under(4n)))).toMatchObject({ status: 'fenced' });
    await clock.advance(1);
    expect(await send(op(under(4n)))).toMatchObject({ status: 'written' });
  });
});

describe('a scan', () => {
  const random = new SeededRandom();

  it(`finds exactly the keys below its prefix, in the order of their bytes, in pages of any size (seed ${random.seed})`, async () => {
    const letters = ['a', 'b', '/', 'é', '\uffee', '😀', '\ue000'];
    const keys = new Set<string>();
    while (keys.size < 3_000) {
      const length = 1 + Math.floor(random.fraction() * 8);
      keys.add(Array.from({ length }, () => letters[Math.floor(random.fraction() * 7)]).join(''));
    }
    for (const key of keys) await written(op({ key }));
    for (const prefix of ['', 'a', 'a/', '😀', 'nothing']) {
      const below = [...keys].filter((key) => key.startsWith(prefix));
      const sorted = below.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      for (const limit of [1, 7, 1_000, 5_000]) expect(await keysOf(prefix, limit)).toEqual(sorted);
    }
    const removed = [...keys].filter(() => random.fraction() < 0.9);
    for (const key of removed) await written(op({ key, value: null }));
    expect(await keysOf('', 100)).toHaveLength(keys.size - removed.length);
  });

  it('has a cursor that stays valid while entries come and go', async () => {
    for (const key of ['p/a', 'p/c', 'p/e', 'p/g']) await written(op({ key }));
    const first = await state.scan('p/', undefined, 2);
    await written(op({ key: 'p/e', value: null }));
    await written(op({ key: 'p/b' }));
    await written(op({ key: 'p/f' }));
    const second = await state.scan('p/', first.cursor, 10);
    expect(second.entries.map(({ key }) => key)).toEqual(['p/f', 'p/g']);
    expect(second).not.toHaveProperty('cursor');
  });

  it('leaves out what has expired', async () => {
    await written(op({ key: 'p/a', ttl: 10 }));
    await written(op({ key: 'p/b' }));
    await clock.advance(10);
    expect(await keysOf('p/', 1)).toEqual(['p/b']);
  });
});

describe('a watch', () => {
  it('delivers the newest value after the write has returned, merging writes between', async () => {
    const heard: StateChange[] = [];
    await state.watch('ns/state/', (change) => heard.push(change));
    void state.write([op({ value: '1' })]);
    void state.write([op({ value: '2' })]);
    void state.write([op({ key: 'other/state/k' })]);
    expect(heard).toEqual([]);
    await turn();
    expect(heard).toEqual([{ key: KEY, entry: await get() }]);
    await written(op({ value: null }));
    await turn();
    expect(heard.slice(1)).toEqual([{ key: KEY, entry: null }]);
  });

  it('ends for its own listener alone, and not when the store is closed by somebody who shares it', async () => {
    const heard: string[] = [];
    const first = await state.watch('', ({ key }) => heard.push(`first ${key}`));
    await state.watch('', ({ key }) => heard.push(`second ${key}`));
    await first.close();
    await state.close();
    await written(op());
    await turn();
    expect(heard).toEqual([`second ${KEY}`]);
  });
});

describe('the store', () => {
  it('tells its own time, in whole milliseconds', async () => {
    clock.shiftWall(0.5);
    expect(await state.now()).toBe(Math.floor(clock.now().wallMs));
  });

  it('[L5] sets no timer', async () => {
    await written(op({ ttl: 100 }));
    expect(clock.pendingTimers.total).toBe(0);
  });
});
