/** Cases of the run port: records, their unique keys, and their moves. */
import { assert, expectStatus } from '../assert.js';
import { ODD_KEYS } from '../odd-keys.js';
import type { RunCase } from './kit.js';

const STATES = ['pending', 'running', 'completed', 'failed', 'on-hold', 'expired', 'skipped'] as const;

export const movingCases: readonly RunCase[] = [
  {
    title: 'keeps a record with everything that it says, in every state, and knows nothing of others',
    run: async (kit) => {
      assert.equal(await kit.store.get(kit.namespace, { task: 'settlement', key: 'none' }), null);
      for (const state of STATES) {
        const base = { trigger: 'cron', scheduledForMs: 1_800_000_000_123, input: '{"a":"ä"}' } as const;
        const lastFault = { name: 'Error', message: 'first try' };
        const status = kit.status(state, 1_800_000_000_001);
        const run = await kit.run(state, {
          ...base,
          lastFault,
          alarmed: true,
          keyed: true,
          attempt: 3,
          status,
        });
        const { version } = await kit.create(run);
        const stored = await (await kit.second()).get(kit.namespace, run);
        assert.deepEqual(stored, { run, version });
      }
    },
  },
  {
    title: '[S7] has one record per key: a second create meets the first record and changes nothing',
    run: async (kit) => {
      const first = await kit.create(await kit.run('2026-11-29'));
      const other = await kit.run('2026-11-29', { trigger: 'cron' });
      const answer = await (await kit.second()).create(kit.namespace, other, kit.event('pending'));
      assert.deepEqual(expectStatus(answer, 'exists', 'second create').stored, first);
      assert.deepEqual(await kit.store.get(kit.namespace, other), first);
      assert.equal((await kit.store.events(kit.namespace, other)).length, 1);
    },
  },
  {
    title: '[S7] lets one of many creates win, from two connections',
    run: async (kit) => {
      const stores = [kit.store, await kit.second()];
      const creates = Array.from({ length: 20 }, async (_, n) =>
        stores[n % 2]!.create(kit.namespace, await kit.run('k'), kit.event('pending')),
      );
      const answers = await Promise.all(creates);
      assert.equal(answers.filter(({ status }) => status === 'created').length, 1);
      const ids = new Set(answers.map((answer) => (answer.status === 'failed' ? '' : answer.stored.run.id)));
      assert.equal(ids.size, 1, 'every loser is shown the record of the winner');
    },
  },
  {
    title: '[S4] answers a re-sent create with created, also after the record moved on',
    run: async (kit) => {
      const run = await kit.run('k');
      const event = kit.event('pending');
      const first = await kit.create(run, event);
      assert.deepEqual(await kit.store.create(kit.namespace, run, event), {
        status: 'created',
        stored: first,
      });
      const moved = await kit.move(first, kit.status('running', 5));
      const late = expectStatus(await kit.store.create(kit.namespace, run, event), 'created', 'late create');
      assert.equal(late.stored.version, moved.version);
      assert.equal((await kit.store.events(kit.namespace, run)).length, 2);
    },
  },
  {
    title: '[S7] moves a record by compare-and-set, with a new version every time',
    run: async (kit) => {
      const pending = await kit.create(await kit.run('k'));
      const running = await kit.move(pending, kit.status('running', 5));
      const completed = await kit.move(running, kit.status('completed', 6));
      assert.equal(new Set([pending, running, completed].map(({ version }) => version)).size, 3);
      assert.deepEqual(await kit.store.get(kit.namespace, completed.run), completed);
    },
  },
  {
    title: '[B132] [S7] refuses a stale node’s finish, shows what is there, and adds no history',
    run: async (kit) => {
      const pending = await kit.create(await kit.run('k'));
      const running = await kit.move(pending, kit.status('running', 5));
      const completed = await kit.move(running, kit.status('completed', 6));
      for (const { version } of [pending, running]) {
        const next = kit.next(running.run, kit.status('failed', 7));
        const answer = await kit.store.transition(
          kit.namespace,
          version,
          next,
          kit.event('failed', 'running'),
        );
        assert.deepEqual(expectStatus(answer, 'conflict', 'a stale finish').stored, completed);
      }
      assert.deepEqual(await kit.store.get(kit.namespace, completed.run), completed);
      assert.equal((await kit.store.events(kit.namespace, completed.run)).length, 3);
    },
  },
  {
    title: 'answers a move of a record that is not there with a conflict with nothing',
    run: async (kit) => {
      const other = await kit.create(await kit.run('other'));
      const gone = await kit.run('gone');
      const answer = await kit.store.transition(kit.namespace, other.version, gone, kit.event('pending'));
      assert.equal(expectStatus(answer, 'conflict', 'a move of nothing').stored, null);
      assert.equal(await kit.store.get(kit.namespace, gone), null);
    },
  },
  {
    title: '[S7] lets one of many moves from one version win',
    run: async (kit) => {
      const pending = await kit.create(await kit.run('k'));
      const stores = [kit.store, await kit.second()];
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => {
          const next = kit.next(pending.run, kit.status('running', n));
          return stores[n % 2]!.transition(
            kit.namespace,
            pending.version,
            next,
            kit.event('running', 'pending'),
          );
        }),
      );
      assert.equal(answers.filter(({ status }) => status === 'moved').length, 1);
      assert.equal(answers.filter(({ status }) => status === 'conflict').length, 19);
    },
  },
  {
    title: '[S4] settles a re-sent move by the run’s events, also after the record moved on',
    run: async (kit) => {
      const pending = await kit.create(await kit.run('k'));
      const event = kit.event('running', 'pending');
      const running = await kit.move(pending, kit.status('running', 5), event);
      const again = await kit.store.transition(kit.namespace, pending.version, running.run, event);
      assert.deepEqual(expectStatus(again, 'moved', 're-sent').stored, running);
      const completed = await kit.move(running, kit.status('completed', 6));
      const late = await kit.store.transition(kit.namespace, pending.version, running.run, event);
      assert.equal(expectStatus(late, 'moved', 're-sent late').stored.version, completed.version);
      assert.deepEqual(await kit.store.get(kit.namespace, completed.run), completed);
      const writeIds = (await kit.store.events(kit.namespace, completed.run)).map(({ writeId }) => writeId);
      assert.equal(writeIds.filter((writeId) => writeId === event.writeId).length, 1);
    },
  },
  {
    title: 'keeps the history of a run, oldest first, line by line as it was written',
    run: async (kit) => {
      const lines = [
        kit.event('pending', 'none', { atMs: 10, what: 'created', note: 'by hand: ä 😀' }),
        kit.event('running', 'pending', {
          atMs: 20,
          node: { id: 'n', label: 'pod' },
          token: '18446744073709551617',
        }),
        kit.event('completed', 'running', { atMs: 20, attempt: 2 }),
      ];
      let stored = await kit.create(await kit.run('k'), lines[0]);
      stored = await kit.move(stored, kit.status('running', 5), lines[1]);
      stored = await kit.move(stored, kit.status('completed', 6), lines[2]);
      assert.deepEqual(await kit.store.events(kit.namespace, stored.run), lines);
      assert.deepEqual(await kit.store.events(kit.namespace, { task: 'settlement', key: 'none' }), []);
    },
  },
  {
    title: 'creates a record that runs at once in one step',
    unless: ({ createRunning }) =>
      createRunning ? undefined : 'no create of a running run (traits.createRunning)',
    run: async (kit) => {
      const running = await kit.create(await kit.run('k', { status: kit.status('running', 5) }));
      await kit.move(running, kit.status('completed', 6));
    },
  },
  {
    title: '[B159] [B162] compares keys and tasks byte by byte, and takes no pair for another',
    run: async (kit) => {
      for (const key of ODD_KEYS) await kit.create(await kit.run(key));
      const pairs = ['a b/c', 'a/b c', 'a:b c', 'a b:c', '1 1', '11 1', '1 11'];
      for (const pair of pairs) {
        const [task, key] = pair.split(' ') as [string, string];
        await kit.create(await kit.run(key, { task }));
      }
      for (const key of ODD_KEYS) {
        assert.equal((await kit.store.get(kit.namespace, { task: 'settlement', key }))?.run.key, key);
      }
      const listed = await kit.pages({ task: 'settlement', limit: 50 });
      assert.deepEqual(new Set(listed.map(({ run }) => run.key)), new Set(ODD_KEYS));
    },
  },
  {
    title: 'keeps namespaces apart, also where one is the beginning of another',
    run: async (kit) => {
      const spaces = [kit.namespace, `${kit.namespace}2`, `${kit.namespace}_`, kit.namespace.toUpperCase()];
      for (const [n, space] of spaces.entries()) {
        await kit.create(await kit.run('k', { id: `run ${n}` }), kit.event('pending'), space);
        await kit.store.putTask(space, null, { task: 'settlement', lastSuccessMs: n });
      }
      for (const [n, space] of spaces.entries()) {
        const { runs } = await kit.store.list(space, { limit: 10 });
        assert.deepEqual(
          runs.map(({ run }) => run.id),
          [`run ${n}`],
        );
        const due = await kit.store.due(space, { tasks: ['settlement'], overdueMs: 0, limit: 10 });
        assert.deepEqual(
          due.runs.map(({ run }) => run.id),
          [`run ${n}`],
        );
        assert.equal((await kit.store.task(space, 'settlement'))?.record.lastSuccessMs, n);
        assert.equal((await kit.store.events(space, { task: 'settlement', key: 'k' })).length, 1);
      }
    },
  },
];
