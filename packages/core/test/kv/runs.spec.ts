/**
 * The run port on a state store, sentence by sentence, with what each call costs at the store.
 */
import { kvRuns, MAX_VALUE_BYTES, memoryLocks, type StoredRun } from '@guard/core';
import { faultyState } from '@guard/testing';
import { NS, Stage } from './stage.js';

let stage: Stage;

beforeEach(() => {
  stage = new Stage();
});

const REF = { task: 't', key: 'k' };

async function entries(prefix: string): Promise<string[]> {
  const page = await stage.inner.scan(`${NS}/run/${prefix}`, undefined, 1_000);
  return page.entries.map(({ key }) => key);
}

describe('[C5] an uncontended call', () => {
  it('is one call of the store: create, every move, and finish', async () => {
    const [created, creating] = await stage.callsOf(() => stage.create(stage.pending()));
    const [running, starting] = await stage.callsOf(() => stage.move(created, stage.running()));
    const [, finishing] = await stage.callsOf(() => stage.move(running, stage.completed()));
    expect([creating, starting, finishing]).toEqual([['write'], ['write'], ['write']]);
  });

  it('makes a whole run two calls, where it is created running', async () => {
    expect(stage.runs.traits.createRunning).toBe(true);
    const [running, creating] = await stage.callsOf(() => stage.create(stage.running()));
    const [, finishing] = await stage.callsOf(() => stage.move(running, stage.completed()));
    expect([...creating, ...finishing]).toHaveLength(2);
  });

  it('makes a whole run three calls on a store whose batches are not one step', async () => {
    const traits = { ...stage.counted.state.traits, atomicBatch: false };
    const runs = kvRuns({ ...stage.counted.state, traits });
    const [running, creating] = await stage.callsOf(() => stage.create(stage.running(), runs));
    const next = stage.completed();
    const [, finishing] = await stage.callsOf(() =>
      runs.transition(NS, running.version, next, stage.event(next.state)),
    );
    expect([...creating, ...finishing]).toHaveLength(3);
  });

  it('moves a run that this process only read in one call too', async () => {
    await stage.create(stage.running());
    const other = kvRuns(stage.counted.state);
    const read = await other.get(NS, REF);
    const next = stage.completed();
    const [answer, calls] = await stage.callsOf(() =>
      other.transition(NS, read!.version, next, stage.event(next.state)),
    );
    expect(answer).toMatchObject({ status: 'moved' });
    expect(calls).toEqual(['write']);
  });

  it('reads first where the version is not known', async () => {
    const stored = await stage.create(stage.running());
    const next = stage.completed();
    const other = kvRuns(stage.counted.state);
    const [answer, calls] = await stage.callsOf(() =>
      other.transition(NS, stored.version, next, stage.event(next.state)),
    );
    expect(answer).toMatchObject({ status: 'moved', stored: { run: next } });
    expect(calls).toEqual(['read', 'write']);
  });
});

describe('create', () => {
  it('[S7] takes a key once per task, and shows who has it', async () => {
    const first = await stage.create(stage.running());
    const second = await stage.runs.create(NS, stage.pending({ id: 'other' }), stage.event('pending'));
    expect(second).toEqual({ status: 'exists', stored: first });
    expect(await stage.runs.get(NS, REF)).toEqual(first);
  });

  it('tells tasks, keys and namespaces apart byte by byte', async () => {
    const names = [
      ['a', 'b/c'],
      ['a/b', 'c'],
      ['a', 'b'],
      ['A', 'b'],
      ['é', 'b'],
      ['é'.normalize('NFD'), 'b'],
      ['a:b', 'c'],
      ['a', 'b:c'],
    ];
    for (const [task, key] of names) await stage.create(stage.pending({ task: task!, key: key! }));
    expect(await stage.runs.get('other', { task: 'a', key: 'b' })).toBeNull();
    expect((await stage.runs.list(NS, { limit: 100 })).runs).toHaveLength(names.length);
  });

  it('[S4] answers its re-sending with its own record, also after the record moved on', async () => {
    const run = stage.running();
    const event = stage.event('running');
    const first = await stage.runs.create(NS, run, event);
    expect(first.status).toBe('created');
    expect(await stage.runs.create(NS, run, event)).toEqual(first);
    const moved = await stage.move((first as { stored: StoredRun }).stored, stage.completed());
    expect(await stage.runs.create(NS, run, event)).toEqual({ status: 'created', stored: moved });
    expect(await stage.due()).toEqual([]);
    expect(await entries('a/')).toHaveLength(1);
  });

  it('leaves no index entry behind when it loses', async () => {
    await stage.create(stage.running());
    const other = stage.pending({ id: 'other', createdAtMs: stage.nowMs + 1 });
    await stage.runs.create(NS, other, stage.event('pending'));
    expect([await entries('a/'), await entries('o/')]).toMatchObject([{ length: 1 }, { length: 1 }]);
  });

  it('takes names as long as the port allows, within the longest full key', async () => {
    const run = stage.pending({ task: ':'.repeat(512), key: '\\'.repeat(512) });
    const namespace = 'n'.repeat(64);
    await stage.runs.create(namespace, run, stage.event('pending'));
    const { entries: all } = await stage.inner.scan(`${namespace}/`, undefined, 10);
    expect(all).toHaveLength(3);
    for (const { key } of all) expect(Buffer.byteLength(key)).toBeLessThanOrEqual(1_280);
  });
});

describe('transition', () => {
  it('[S7] loses against any move in between, and says what is there', async () => {
    const created = await stage.create(stage.running());
    const moved = await stage.move(created, stage.completed());
    const event = stage.event('failed');
    const late = await stage.runs.transition(NS, created.version, stage.failed(), event);
    expect(late).toEqual({ status: 'conflict', stored: moved });
    const other = kvRuns(stage.inner);
    expect(await other.transition(NS, created.version, stage.failed(), event)).toEqual(late);
    const gone = stage.completed({ key: 'never' });
    expect(await stage.runs.transition(NS, 'x', gone, event)).toEqual({ status: 'conflict', stored: null });
  });

  it('[S4] is settled by the history when it is sent again, also from a record that moved on', async () => {
    const created = await stage.create(stage.pending());
    const event = stage.event('running');
    const running = await stage.move(created, stage.running(), event);
    const again = stage.runs.transition(NS, created.version, stage.running(), event);
    expect(await again).toEqual({ status: 'moved', stored: running });
    const done = await stage.move(running, stage.completed());
    const late = stage.runs.transition(NS, created.version, stage.running(), event);
    expect(await late).toEqual({ status: 'moved', stored: done });
  });

  it('[S6] [S4] answers a lost reply as a fault, and the same wish sent again as done', async () => {
    const faulty = faultyState(stage.inner);
    const runs = kvRuns(faulty.store);
    const created = await stage.create(stage.pending(), runs);
    const [next, event] = [stage.running(), stage.event('running')];
    faulty.down();
    await expect(runs.transition(NS, created.version, next, event)).rejects.toThrow('away');
    faulty.heal();
    await stage.move(created, next, event);
    expect(await runs.transition(NS, created.version, next, event)).toMatchObject({ status: 'moved' });
  });

  it('keeps record and history in one step, and the history in its order', async () => {
    let stored = await stage.create(stage.pending());
    for (const next of [stage.running(), stage.failed(), stage.pending(), stage.running()]) {
      stored = await stage.move(stored, next);
    }
    const events = await stage.runs.events(NS, REF);
    expect(events.map(({ to }) => to)).toEqual(['pending', 'running', 'failed', 'pending', 'running']);
    expect(await stage.runs.events(NS, { task: 't', key: 'other' })).toEqual([]);
  });
});

describe('the history', () => {
  it('is bounded: progress goes first, the creation never, and dropped writes are still recognised', async () => {
    let stored = await stage.create(stage.running());
    const events = [];
    for (let round = 0; round < 400; round += 1) {
      const what = round % 10 === 0 ? 'taken-over' : 'progress';
      const event = stage.event('running', { what });
      events.push(event);
      stored = await stage.move(stored, stage.running(), event);
    }
    const kept = await stage.runs.events(NS, REF);
    expect(kept).toHaveLength(128);
    expect(kept[0]).toMatchObject({ from: 'none', what: 'step' });
    expect(kept.filter(({ what }) => what === 'taken-over')).toHaveLength(40);
    expect(kept.at(-1)).toEqual(events.at(-1));
    for (const event of events) {
      const again = await stage.runs.transition(NS, 'x', stage.running(), event);
      expect(again).toEqual({ status: 'moved', stored });
    }
  });

  it('gives way where record and history are over the limit of the store, and a record alone is refused clearly', async () => {
    let stored = await stage.create(stage.running());
    const note = 'n'.repeat(20_000);
    for (let round = 0; round < 100; round += 1) {
      stored = await stage.move(stored, stage.running(), stage.event('running', { note }));
    }
    const big = stage.completed({ value: 'v'.repeat(MAX_VALUE_BYTES) });
    const refused = stage.runs.transition(NS, stored.version, big, stage.event('completed'));
    await expect(refused).rejects.toMatchObject({ code: 'invalid-argument', key: 'k' });
    await expect(refused).rejects.toThrow(/record of run "k" of task "t" is \d+ bytes/);
    expect((await stage.runs.get(NS, REF))?.version).toBe(stored.version);
  });
});

describe('due', () => {
  it('finds running runs, pending ones that are due, and failed ones whose compensation is due, oldest first', async () => {
    const at = stage.nowMs;
    await stage.create(stage.failed({ key: 'd', createdAtMs: at + 4, compensation: 'due' } as object));
    await stage.create(stage.running({ key: 'c', createdAtMs: at + 2 }));
    await stage.create(stage.pending({ key: 'a', createdAtMs: at + 3 }));
    await stage.create(stage.pending({ key: 'later', availableAtMs: at + 1 }));
    await stage.create(stage.failed({ key: 'f' }));
    await stage.create(stage.completed({ key: 'g' }));
    await stage.create(stage.running({ key: 'other', task: 'unknown' }));
    expect((await stage.due()).map(({ key }) => key)).toEqual(['c', 'a', 'd']);
    await stage.clock.advance(1);
    expect((await stage.due()).map(({ key }) => key)).toEqual(['later', 'c', 'a', 'd']);
    expect((await stage.due({ overdueMs: 1 })).map(({ key }) => key)).toEqual(['c', 'a', 'd']);
    expect((await stage.due({ overdueMs: 2 })).map(({ key }) => key)).toEqual(['c', 'd']);
  });

  it('goes on from page to page without losing or repeating a run', async () => {
    const keys = Array.from({ length: 700 }, (_, index) => `k${String(index).padStart(3, '0')}`);
    for (const [index, key] of keys.entries()) {
      const createdAtMs = stage.nowMs + index;
      await stage.create(stage.running({ key, createdAtMs }));
      await stage.create(stage.completed({ key: `${key} done`, createdAtMs }));
    }
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await stage.runs.due(NS, {
        ...{ tasks: ['t'], overdueMs: 0, limit: 37 },
        ...(cursor !== undefined && { cursor }),
      });
      found.push(...page.runs.map(({ run }) => run.key));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found).toEqual(keys);
  });

  it('takes the entries of finished runs off, and finds a run that is opened again', async () => {
    const running = await stage.create(stage.running());
    const failed = await stage.move(running, stage.failed());
    expect(await entries('o/')).toHaveLength(1);
    expect(await stage.due({ tasks: ['another'] })).toEqual([]);
    expect(await entries('o/')).toHaveLength(0);
    await stage.move(failed, stage.pending());
    expect(await stage.due()).toMatchObject([{ state: 'pending' }]);
  });

  it('leaves an entry without a record alone for an hour: its record may be on its way', async () => {
    const before = await stage.inner.now();
    const { traits, ...rest } = stage.inner;
    const crashing = kvRuns({
      ...rest,
      traits: { ...traits, atomicBatch: false },
      now: () => stage.inner.now(),
      read: (keys) => stage.inner.read(keys),
      scan: (...args) => stage.inner.scan(...args),
      close: () => stage.inner.close(),
      write: (writes) =>
        writes.some(({ key }) => key.includes('/r/'))
          ? new Promise(() => undefined)
          : stage.inner.write(writes),
    });
    void crashing.create(NS, stage.running(), stage.event('running'));
    await stage.clock.advance(3_599_999);
    expect(await stage.due()).toEqual([]);
    expect(await entries('o/')).toHaveLength(1);
    await stage.clock.advance(1);
    expect(await stage.due()).toEqual([]);
    expect(await entries('o/')).toHaveLength(0);
    expect(await stage.inner.now()).toBe(before + 3_600_000);
  });
});

describe('list', () => {
  it('shows runs newest first, by task and by state, in pages', async () => {
    for (let index = 0; index < 30; index += 1) {
      await stage.clock.advance(1);
      const over = { key: `k${index}`, task: index % 3 === 0 ? 'other' : 't' };
      await stage.create(index % 2 === 0 ? stage.running(over) : stage.completed(over));
    }
    const all = await stage.runs.list(NS, { limit: 100 });
    expect(all.runs.map(({ run }) => run.key)).toEqual(
      Array.from({ length: 30 }, (_, index) => `k${29 - index}`),
    );
    expect(all.cursor).toBeUndefined();
    const query = { task: 't', states: ['completed'] as const, limit: 4 };
    const first = await stage.runs.list(NS, query);
    const second = await stage.runs.list(NS, { ...query, cursor: first.cursor! });
    const third = await stage.runs.list(NS, { ...query, cursor: second.cursor! });
    const keys = [first, second, third].map(({ runs }) => runs.map(({ run }) => run.key));
    expect(keys).toEqual([
      ['k29', 'k25', 'k23', 'k19'],
      ['k17', 'k13', 'k11', 'k7'],
      ['k5', 'k1'],
    ]);
    expect(third.cursor).toBeUndefined();
  });

  it('refuses a cursor that is none', async () => {
    await expect(stage.runs.list(NS, { limit: 1, cursor: 'nonsense' })).rejects.toThrow('invalid-argument');
  });
});

describe('prune', () => {
  const all = { recordsBeforeMs: Infinity, keysBeforeMs: Infinity, limit: 1_000 };

  it('[S7] leaves a tombstone that keeps the key taken, and later nothing', async () => {
    await stage.create(stage.completed({ input: '"in"' }));
    await stage.clock.advance(10);
    const old = { recordsBeforeMs: stage.nowMs, keysBeforeMs: stage.nowMs - 20, limit: 10 };
    expect(await stage.runs.prune(NS, old)).toBe(1);
    expect(await stage.runs.prune(NS, old)).toBe(0);
    const tombstone = (await stage.runs.get(NS, REF))!.run;
    expect(tombstone).toMatchObject({ state: 'completed', valueOmitted: true });
    expect(tombstone).not.toHaveProperty('value');
    expect(tombstone).not.toHaveProperty('input');
    expect(await stage.runs.events(NS, REF)).toEqual([]);
    expect((await stage.runs.list(NS, { limit: 10 })).runs).toEqual([]);
    const again = await stage.runs.create(NS, stage.pending(), stage.event('pending'));
    expect(again).toMatchObject({ status: 'exists', stored: { run: { state: 'completed' } } });
    expect(await stage.runs.prune(NS, { ...old, keysBeforeMs: stage.nowMs })).toBe(1);
    expect(await entries('a/')).toEqual([]);
    expect(await stage.runs.create(NS, stage.pending(), stage.event('pending'))).toMatchObject({
      status: 'created',
    });
  });

  it('[S4] leaves the place of a tombstone to it when its create comes once more', async () => {
    const [run, event] = [stage.completed(), stage.event('completed')];
    await stage.runs.create(NS, run, event);
    await stage.clock.advance(1);
    await stage.runs.prune(NS, { ...all, keysBeforeMs: 0 });
    expect(await stage.runs.create(NS, run, event)).toMatchObject({ status: 'created' });
    expect(await stage.runs.prune(NS, all)).toBe(1);
    expect(await stage.runs.get(NS, REF)).toBeNull();
  });

  it('never touches what is not finished, or what has a due compensation', async () => {
    await stage.create(stage.pending({ key: 'a' }));
    await stage.create(stage.running({ key: 'b' }));
    await stage.create(stage.failed({ key: 'c', compensation: 'due' }));
    await stage.create(stage.pending({ key: 'd', state: 'on-hold', sinceMs: stage.nowMs, reason: 'x' }));
    await stage.clock.advance(1);
    expect(await stage.runs.prune(NS, all)).toBe(0);
    await stage.create(stage.failed({ key: 'e', compensation: 'error' }));
    await stage.create(stage.pending({ key: 'f', state: 'expired', finishedAtMs: 0, reason: 'x' }));
    expect(await stage.runs.prune(NS, all)).toBe(2);
    expect((await stage.runs.list(NS, { limit: 100 })).runs).toHaveLength(4);
  });

  it('keeps the keys of instants above the low-water mark, whatever their age', async () => {
    const at = stage.nowMs;
    await stage.runs.putTask(NS, null, { task: 't', lowWaterMarkMs: at });
    await stage.create(stage.completed({ key: 'below', scheduledForMs: at }));
    await stage.create(stage.completed({ key: 'above', scheduledForMs: at + 1 }));
    expect(await stage.runs.prune(NS, all)).toBe(2);
    expect(await stage.runs.get(NS, { task: 't', key: 'below' })).toBeNull();
    expect((await stage.runs.get(NS, { task: 't', key: 'above' }))?.run).toMatchObject({
      valueOmitted: true,
    });
    const { version } = (await stage.runs.task(NS, 't'))!;
    await stage.runs.putTask(NS, version, { task: 't', lowWaterMarkMs: at + 1 });
    expect(await stage.runs.prune(NS, all)).toBe(1);
  });

  it('stops at its limit, and goes on with the next call', async () => {
    for (let index = 0; index < 25; index += 1) await stage.create(stage.completed({ key: `k${index}` }));
    const counts = [];
    for (let call = 0; call < 4; call += 1) counts.push(await stage.runs.prune(NS, { ...all, limit: 10 }));
    expect(counts).toEqual([10, 10, 5, 0]);
    expect(await stage.inner.scan(`${NS}/run/a/`, undefined, 10)).toEqual({ entries: [] });
  });

  it('[S7] loses against a run that is opened again in the same moment', async () => {
    const failed = await stage.create(stage.failed());
    await stage.clock.advance(1);
    const faulty = kvRuns({
      ...stage.counted.state,
      write: async (writes) => {
        await stage.move(failed, stage.pending());
        return stage.inner.write(writes);
      },
    });
    expect(await faulty.prune(NS, all)).toBe(0);
    expect(await stage.due()).toMatchObject([{ key: 'k', state: 'pending' }]);
  });
});

describe('tasks and nodes', () => {
  it('writes a task only over the expected version', async () => {
    expect(await stage.runs.task(NS, 't')).toBeNull();
    const first = await stage.runs.putTask(NS, null, { task: 't', lowWaterMarkMs: 1, writeId: 'w' });
    expect(await stage.runs.putTask(NS, null, { task: 't', lowWaterMarkMs: 1, writeId: 'w' })).toBe(first);
    expect(await stage.runs.putTask(NS, null, { task: 't' })).toBeNull();
    expect(await stage.runs.task(NS, 't')).toEqual({
      record: { task: 't', lowWaterMarkMs: 1, writeId: 'w' },
      version: first,
    });
    expect(await stage.runs.putTask(NS, first, { task: 't', lowWaterMarkMs: 2 })).not.toBe(first);
    expect(await stage.runs.putTask(NS, first, { task: 't', lowWaterMarkMs: 3 })).toBeNull();
    expect((await stage.runs.task(NS, 't'))?.record.lowWaterMarkMs).toBe(2);
    expect(await stage.runs.task('other', 't')).toBeNull();
  });

  it('[S6] throws where a write of a task or node was not answered', async () => {
    const failed = { status: 'failed', cause: new Error('gone') } as const;
    const runs = kvRuns({ ...stage.counted.state, write: async (writes) => writes.map(() => failed) });
    const node = { id: 'n', label: 'n', lockKey: 'x', backend: 'memory', startedAtMs: 0, tasks: [] };
    await expect(runs.putTask(NS, null, { task: 't' })).rejects.toMatchObject({ inDoubt: true });
    await expect(runs.putNode(NS, node, 1_000)).rejects.toThrow('unavailable');
    await expect(runs.removeNode(NS, 'n')).rejects.toThrow('unavailable');
  });

  it('lists nodes for as long as they are announced', async () => {
    const node = (id: string) => ({
      ...{ id, label: id, lockKey: `${NS}/node/${id}`, backend: 'memory', startedAtMs: 1, tasks: ['t'] },
    });
    for (const id of ['a', 'b', 'c']) await stage.runs.putNode(NS, node(id), 1_000);
    await stage.clock.advance(999);
    await stage.runs.putNode(NS, node('b'), 1_000);
    await stage.runs.removeNode(NS, 'c');
    expect(await stage.runs.nodes(NS)).toEqual([node('a'), node('b')]);
    await stage.clock.advance(1);
    expect(await stage.runs.nodes(NS)).toEqual([node('b')]);
    expect(await stage.runs.nodes('other')).toEqual([]);
  });
});

it.each([
  ['nothing', undefined],
  ['locks', memoryLocks()],
  ['an object', {}],
])('refuses what is no state store: %s', (_, given) => {
  expect(() => kvRuns(given as never)).toThrow(/state must be a state store/);
});

describe('a record that something else than a guard wrote', () => {
  it.each(['not json', '{}', '{"run":{}}'])(
    '[S6] [L4] is named, and keeps nobody from the others: %s',
    async (spoiled) => {
      for (const key of ['a', 'bad', 'c']) await stage.create({ ...stage.running(), key });
      const key = (await entries('')).find((name) => name.includes('bad') && name.includes('/r'))!;
      await stage.inner.write([{ key, value: spoiled, expect: 'any', writeId: 'by hand', ttl: 'none' }]);
      const error = { code: 'unavailable', message: expect.stringContaining('run bad of t') };
      const { runs, unreadable } = await stage.runs.due(NS, { tasks: ['t'], overdueMs: 0, limit: 10 });
      expect(runs.map(({ run }) => run.key)).toEqual(['a', 'c']);
      expect(unreadable).toMatchObject([error]);
      await expect(stage.runs.get(NS, { task: 't', key: 'bad' })).rejects.toMatchObject(error);
      await expect(stage.runs.list(NS, { limit: 10 })).rejects.toMatchObject(error);
      await stage.runs.prune(NS, { recordsBeforeMs: 0, keysBeforeMs: 0, limit: 10 });
      // Its place in the indexes is still there, so it is due again once it is repaired.
      await stage.inner.write([{ key, value: null, expect: 'any', writeId: 'away', ttl: 'none' }]);
      await stage.create({ ...stage.running(), key: 'bad' });
      const again = await stage.runs.due(NS, { tasks: ['t'], overdueMs: 0, limit: 10 });
      expect(again).toMatchObject({ runs: { length: 3 } });
    },
  );
});
