/** Cases of the run port: what is due, what there is, and what may go. */
import type { RunRecord, RunStatus } from '@guard/core';
import { assert, expectStatus } from '../assert.js';
import { keysOf, type RunCase, type RunKit } from './kit.js';

/** Creates runs one after the other, each a little newer than the one before; the newest is created now. */
async function createInTime(kit: RunKit, runs: readonly RunRecord[]): Promise<void> {
  const nowMs = await kit.store.now();
  for (const [n, run] of runs.entries()) {
    const atMs = nowMs - (runs.length - n) * 10;
    await kit.create({ ...run, createdAtMs: atMs, updatedAtMs: atMs });
  }
}

async function prune(
  kit: RunKit,
  recordsBeforeMs: number,
  keysBeforeMs: number,
  limit = 100,
): Promise<number> {
  let gone = 0;
  for (let calls = 0, quiet = 0; quiet < 2; calls += 1) {
    assert.ok(calls < 200, 'pruning does not come to an end');
    const went = await kit.store.prune(kit.namespace, { recordsBeforeMs, keysBeforeMs, limit });
    assert.ok(went <= limit, `${went} went for a limit of ${limit}`);
    gone += went;
    quiet = went === 0 ? quiet + 1 : 0;
  }
  return gone;
}

const DAY_MS = 86_400_000;

export const findingCases: readonly RunCase[] = [
  {
    title: 'finds running runs, due pending runs and due compensations, oldest first, and nothing else',
    run: async (kit) => {
      const nowMs = await kit.store.now();
      const failed = kit.status('failed', nowMs);
      const runs = [
        await kit.run('1 running', { status: kit.status('running', nowMs) }),
        await kit.run('2 due', { status: kit.status('pending', nowMs - 5) }),
        await kit.run('x later', { status: kit.status('pending', nowMs + 3_600_000) }),
        await kit.run('x completed', { status: kit.status('completed', nowMs) }),
        await kit.run('x failed', { status: failed }),
        await kit.run('3 compensate', { status: { ...failed, compensation: 'due' } as RunStatus }),
        await kit.run('x compensated', { status: { ...failed, compensation: 'done' } as RunStatus }),
        await kit.run('x on hold', { status: kit.status('on-hold', nowMs) }),
        await kit.run('x skipped', { status: kit.status('skipped', nowMs) }),
        await kit.run('x expired', { status: kit.status('expired', nowMs) }),
        await kit.run('4 running', { status: kit.status('running', nowMs) }),
        await kit.run('x other task', { task: 'other', status: kit.status('running', nowMs) }),
      ];
      await createInTime(kit, runs);
      const expected = ['1 running', '2 due', '3 compensate', '4 running'];
      assert.deepEqual(keysOf(await kit.due(['settlement'])), expected);
      assert.deepEqual(keysOf(await kit.due(['settlement'], 0, 1)), expected);
      assert.deepEqual(keysOf(await kit.due(['other', 'unknown'])), ['x other task']);
      assert.deepEqual(keysOf(await kit.due([])), []);
    },
  },
  {
    title: 'finds pending runs only once they are overdue by as much as was asked',
    run: async (kit) => {
      const nowMs = await kit.store.now();
      await kit.create(await kit.run('old', { status: kit.status('pending', nowMs - 60_000) }));
      await kit.create(await kit.run('young', { status: kit.status('pending', nowMs - 1_000) }));
      await kit.create(await kit.run('running', { status: kit.status('running', nowMs) }));
      assert.deepEqual(keysOf(await kit.due(['settlement'], 30_000)).sort(), ['old', 'running']);
      assert.deepEqual(keysOf(await kit.due(['settlement'], 0)).sort(), ['old', 'running', 'young']);
    },
  },
  {
    title: 'finds a run by its newest state only',
    run: async (kit) => {
      const nowMs = await kit.store.now();
      let stored = await kit.create(await kit.run('k', { status: kit.status('pending', nowMs + 60_000) }));
      assert.deepEqual(await kit.due(['settlement']), []);
      stored = await kit.move(stored, kit.status('running', nowMs));
      assert.deepEqual(await kit.due(['settlement']), [stored]);
      stored = await kit.move(stored, kit.status('pending', nowMs - 1));
      assert.deepEqual(await kit.due(['settlement']), [stored]);
      await kit.move(stored, kit.status('completed', nowMs));
      assert.deepEqual(await kit.due(['settlement']), []);
    },
  },
  {
    title: 'finds a failed run again whose compensation became due, and an on-hold run that was sent on',
    run: async (kit) => {
      const nowMs = await kit.store.now();
      let stored = await kit.create(await kit.run('k', { status: kit.status('on-hold', nowMs) }));
      assert.deepEqual(await kit.due(['settlement']), []);
      stored = await kit.move(stored, kit.status('pending', nowMs - 1));
      assert.deepEqual(keysOf(await kit.due(['settlement'])), ['k']);
      const failed = { ...kit.status('failed', nowMs), compensation: 'due' } as Parameters<
        typeof kit.move
      >[1];
      stored = await kit.move(stored, failed);
      assert.deepEqual(await kit.due(['settlement']), [stored]);
    },
  },
  {
    title: 'lists runs newest first, in pages, by task and by state, each once',
    run: async (kit) => {
      const nowMs = await kit.store.now();
      const runs = [];
      for (let n = 0; n < 25; n += 1) {
        const task = n % 5 === 0 ? 'other' : 'settlement';
        const status = kit.status(n % 2 === 0 ? 'completed' : 'failed', nowMs);
        runs.push(await kit.run(`k${String(n).padStart(2, '0')}`, { task, status }));
      }
      await createInTime(kit, runs);
      const newestFirst = [...runs].reverse();
      const keys = (chosen: readonly RunRecord[]) => chosen.map(({ key }) => key);
      for (const limit of [1, 7, 100]) {
        assert.deepEqual(keysOf(await kit.pages({ limit })), keys(newestFirst));
        const own = newestFirst.filter(({ task }) => task === 'settlement');
        assert.deepEqual(keysOf(await kit.pages({ task: 'settlement', limit })), keys(own));
        const failed = own.filter(({ state }) => state === 'failed');
        assert.deepEqual(
          keysOf(await kit.pages({ task: 'settlement', states: ['failed', 'on-hold'], limit })),
          keys(failed),
        );
      }
      assert.deepEqual(await kit.pages({ task: 'unknown', limit: 10 }), []);
    },
  },
  {
    title:
      '[S7] prunes content first and keys later: a pruned key stays taken, without history, value and fault',
    run: async (kit) => {
      const nowMs = await kit.store.now();
      const old = await kit.run('old', { status: kit.status('completed', nowMs - 10 * DAY_MS) });
      const aged = { ...old, createdAtMs: nowMs - 10 * DAY_MS, updatedAtMs: nowMs - 10 * DAY_MS };
      await kit.create(aged);
      await kit.create(await kit.run('young', { status: kit.status('completed', nowMs) }));
      assert.equal(await prune(kit, nowMs - 5 * DAY_MS, nowMs - 20 * DAY_MS), 1);
      assert.deepEqual(await kit.store.events(kit.namespace, aged), []);
      const again = await kit.store.create(kit.namespace, await kit.run('old'), kit.event('pending'));
      const { stored } = expectStatus(again, 'exists', 'a create over a tombstone');
      assert.ok(!('value' in stored.run), 'the value went');
      assert.equal((await kit.store.events(kit.namespace, { task: 'settlement', key: 'young' })).length, 1);
      assert.equal(await prune(kit, nowMs - 5 * DAY_MS, nowMs - 5 * DAY_MS), 1);
      assert.equal(await kit.store.get(kit.namespace, aged), null);
      await kit.create(await kit.run('old'));
    },
  },
  {
    title: '[S8] never prunes what is not finished, nor a due compensation',
    run: async (kit) => {
      const nowMs = await kit.store.now();
      const longAgoMs = nowMs - 100 * DAY_MS;
      const base = { createdAtMs: longAgoMs, updatedAtMs: longAgoMs };
      for (const state of ['pending', 'running', 'on-hold'] as const) {
        await kit.create(await kit.run(state, { ...base, status: kit.status(state, longAgoMs) }));
      }
      const failed = { ...kit.status('failed', longAgoMs), compensation: 'due' } as RunStatus;
      await kit.create(await kit.run('due', { ...base, status: failed }));
      const gone = ['completed', 'failed', 'skipped', 'expired'] as const;
      for (const state of gone) {
        await kit.create(await kit.run(state, { ...base, status: kit.status(state, longAgoMs) }));
      }
      await prune(kit, nowMs, nowMs, 3);
      for (const key of ['pending', 'running', 'on-hold', 'due']) {
        assert.notEqual(await kit.store.get(kit.namespace, { task: 'settlement', key }), null, key);
        assert.equal((await kit.store.events(kit.namespace, { task: 'settlement', key })).length, 1, key);
      }
      for (const key of gone) {
        assert.equal(await kit.store.get(kit.namespace, { task: 'settlement', key }), null, key);
      }
    },
  },
  {
    title: '[S7] keeps keys of instants above the low-water mark, whatever their age',
    run: async (kit) => {
      const nowMs = await kit.store.now();
      const longAgoMs = nowMs - 100 * DAY_MS;
      const base = { createdAtMs: longAgoMs, updatedAtMs: longAgoMs, trigger: 'cron' as const };
      const status = kit.status('completed', longAgoMs);
      await kit.create(await kit.run('below', { ...base, scheduledForMs: 1_000, status }));
      await kit.create(await kit.run('above', { ...base, scheduledForMs: 2_001, status }));
      await kit.store.putTask(kit.namespace, null, { task: 'settlement', lowWaterMarkMs: 2_000 });
      await prune(kit, nowMs, nowMs);
      assert.equal(await kit.store.get(kit.namespace, { task: 'settlement', key: 'below' }), null);
      const again = await kit.store.create(kit.namespace, await kit.run('above'), kit.event('pending'));
      expectStatus(again, 'exists', 'an instant above the mark');
    },
  },
];
