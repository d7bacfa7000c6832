/** Cases of the run port: the tasks' own records, the nodes that are up, and the store's time. */
import type { NodeRecord, TaskRecord } from '@guard/core';
import { assert, expectWithin } from '../assert.js';
import { ODD_KEYS } from '../odd-keys.js';
import type { RunCase } from './kit.js';

function node(id: string): NodeRecord {
  return {
    id,
    label: `label of ${id}`,
    lockKey: `contract/node/${id}`,
    backend: 'contract',
    startedAtMs: 1_800_000_000_123,
    tasks: ['a', 'b'],
    schedules: { a: 'hash of its schedule' },
  };
}

export const registeringCases: readonly RunCase[] = [
  {
    title: 'keeps a task’s record with everything that it says, and changes it by compare-and-set',
    run: async (kit) => {
      assert.equal(await kit.store.task(kit.namespace, 't'), null);
      const record: TaskRecord = {
        task: 't',
        definition: { hash: 'h', text: '0 3 * * *', sinceMs: 1_800_000_000_123 },
        lowWaterMarkMs: 1_800_000_000_000,
        paused: { note: 'Feiertag 😀', sinceMs: 7 },
        lastSuccessMs: 8,
        writeId: 'w',
        alarm: 'run-1/failed',
        planned: [
          { instantMs: 1_799_999_940_000, trigger: 'catch-up', plannedAtMs: 1_800_000_000_001 },
          { instantMs: 1_800_000_000_000, trigger: 'cron', plannedAtMs: 1_800_000_000_001 },
        ],
        summary: {
          fromMs: 1_700_000_000_000,
          toMs: 1_799_999_880_000,
          count: 1_000,
          atLeast: true,
          reason: 'missed',
          told: true,
        },
      };
      const version = await kit.store.putTask(kit.namespace, null, record);
      assert.ok(version !== null);
      const second = await kit.second();
      assert.deepEqual(await second.task(kit.namespace, 't'), { record, version });
      const other = { ...record, writeId: 'another wish' };
      assert.equal(await kit.store.putTask(kit.namespace, null, other), null, 'there is one already');
      const next = await second.putTask(kit.namespace, version, { task: 't' });
      assert.ok(next !== null && next !== version);
      assert.equal(await kit.store.putTask(kit.namespace, version, other), null, 'a stale version');
      assert.deepEqual(await kit.store.task(kit.namespace, 't'), { record: { task: 't' }, version: next });
      assert.equal(await kit.store.putTask(kit.namespace, next, { ...other, task: 'other' }), null);
    },
  },
  {
    title: '[S4] lets a change whose answer was lost be settled by reading the record back',
    run: async (kit) => {
      const record = { task: 't', writeId: 'the wish' };
      const version = await kit.store.putTask(kit.namespace, null, record);
      const again = await kit.store.putTask(kit.namespace, null, record);
      assert.ok(again === null || again === version, 'a re-sent change is not applied twice');
      assert.deepEqual(await kit.store.task(kit.namespace, 't'), { record, version });
    },
  },
  {
    title: 'lets one of many changes of a task win, so that one node raises an alarm',
    run: async (kit) => {
      const version = await kit.store.putTask(kit.namespace, null, { task: 't' });
      const stores = [kit.store, await kit.second()];
      const puts = Array.from({ length: 20 }, (_, n) =>
        stores[n % 2]!.putTask(kit.namespace, version, { task: 't', alarm: `by ${n}` }),
      );
      const won = (await Promise.all(puts)).filter((answer) => answer !== null);
      assert.equal(won.length, 1);
    },
  },
  {
    title: '[B159] [B162] keeps tasks with odd names apart',
    run: async (kit) => {
      for (const [n, task] of ODD_KEYS.entries()) {
        assert.notEqual(await kit.store.putTask(kit.namespace, null, { task, lastSuccessMs: n }), null, task);
      }
      for (const [n, task] of ODD_KEYS.entries()) {
        assert.equal((await kit.store.task(kit.namespace, task))?.record.lastSuccessMs, n);
      }
    },
  },
  {
    title: 'shows nodes as long as they are announced, and no longer',
    run: async (kit) => {
      const ttlMs = kit.time.virtual ? 10_000 : 2_000;
      const stays = node('stays');
      await kit.store.putNode(kit.namespace, stays, ttlMs * 3);
      await kit.store.putNode(kit.namespace, node('goes'), ttlMs);
      await kit.store.putNode(kit.namespace, node('leaves'), ttlMs * 3);
      await kit.store.putNode(kit.namespace, node('renews'), ttlMs);
      await kit.store.putNode(kit.namespace, { ...node('renews'), tasks: ['c'] }, ttlMs * 3);
      const ids = async (): Promise<string[]> =>
        (await (await kit.second()).nodes(kit.namespace)).map(({ id }) => id).sort();
      assert.deepEqual(await ids(), ['goes', 'leaves', 'renews', 'stays']);
      await kit.store.removeNode(kit.namespace, 'leaves');
      await kit.store.removeNode(kit.namespace, 'never announced');
      assert.deepEqual(await ids(), ['goes', 'renews', 'stays']);
      await kit.time.pass(ttlMs + kit.slackMs);
      assert.deepEqual(await ids(), ['renews', 'stays']);
      const found = await kit.store.nodes(kit.namespace);
      assert.deepEqual(
        found.find(({ id }) => id === 'stays'),
        stays,
      );
      assert.deepEqual(found.find(({ id }) => id === 'renews')?.tasks, ['c']);
      assert.deepEqual(await kit.store.nodes(`${kit.namespace}2`), []);
    },
  },
  {
    title: 'tells its own time, which does not go back',
    run: async (kit) => {
      const before = await kit.store.now();
      assert.ok(Number.isFinite(before) && before > Date.UTC(2020, 0, 1), `now() is ${before}`);
      await kit.time.pass(100);
      const after = await kit.store.now();
      expectWithin(after - before, 50, 100 + kit.slackMs, 'time that passed');
      expectWithin((await (await kit.second()).now()) - after, -50, kit.slackMs, 'the other connection');
    },
  },
];
