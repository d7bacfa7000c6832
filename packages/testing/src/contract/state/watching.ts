/** Cases of the state port: watching. Level-triggered: the newest value arrives, what was between may be missing. */
import type { StateChange, StateStore } from '@guard/core';
import { assert, expectCode } from '../assert.js';
import type { StateCase, StateKit } from './kit.js';

/** A store without push polls, so a change may take a while. */
const WITHIN_MS = 5_000;

async function watch(kit: StateKit, prefix: string, on: StateStore = kit.store) {
  const heard: StateChange[] = [];
  const subscription = await on.watch(prefix, (change) => void heard.push(change));
  const last = (key: string): unknown => {
    const change = heard.filter((one) => one.key === key).at(-1);
    if (change === undefined) return 'nothing';
    return change.entry === null ? 'gone' : JSON.parse(change.entry.value);
  };
  return {
    heard,
    last,
    close: () => subscription.close(),
    until: (key: string, value: unknown) =>
      kit.time.untilTrue(() => last(key) === value, WITHIN_MS, `news of ${key} being ${String(value)}`),
  };
}

export const watchingCases: readonly StateCase[] = [
  {
    title: 'delivers the newest value after a create, an update and a delete, from any connection',
    run: async (kit) => {
      const watched = await watch(kit, kit.prefix);
      const version = await kit.put(kit.key(), 1);
      await watched.until(kit.key(), 1);
      const next = await kit.put(kit.key(), 2, { expect: { version } }, await kit.second());
      await watched.until(kit.key(), 2);
      assert.equal(watched.heard.at(-1)?.entry?.version, next);
      await kit.put(kit.key(), null);
      await watched.until(kit.key(), 'gone');
      await watched.close();
    },
  },
  {
    title: 'delivers the last of many quick writes of each key',
    run: async (kit) => {
      const watched = await watch(kit, kit.prefix);
      const writes = Array.from({ length: 200 }, (_, n) => kit.put(kit.key(`k${n % 5}`), n));
      await Promise.all(writes);
      for (let n = 0; n < 5; n += 1) {
        const stored = await kit.value(kit.key(`k${n}`));
        await watched.until(kit.key(`k${n}`), stored);
      }
      await watched.close();
    },
  },
  {
    title: '[B179] tells of exactly its prefix: no pattern, no neighbour',
    run: async (kit) => {
      const watched = await watch(kit, kit.key('a_%*'));
      for (const name of ['a_%*', 'a_%*/x', 'abcd', 'a', 'A_%*', 'a_%']) await kit.put(kit.key(name), 1);
      await watched.until(kit.key('a_%*'), 1);
      await watched.until(kit.key('a_%*/x'), 1);
      const keys = new Set(watched.heard.map(({ key }) => key));
      assert.deepEqual([...keys].sort(), [kit.key('a_%*'), kit.key('a_%*/x')]);
      await watched.close();
    },
  },
  {
    title: 'serves several watchers, each its own prefix',
    run: async (kit) => {
      const [a, b, all] = [
        await watch(kit, kit.key('a')),
        await watch(kit, kit.key('b'), await kit.second()),
        await watch(kit, kit.prefix),
      ];
      await kit.put(kit.key('a'), 1);
      await kit.put(kit.key('b'), 2);
      await a.until(kit.key('a'), 1);
      await b.until(kit.key('b'), 2);
      await all.until(kit.key('a'), 1);
      await all.until(kit.key('b'), 2);
      assert.deepEqual([a.last(kit.key('b')), b.last(kit.key('a'))], ['nothing', 'nothing']);
      for (const one of [a, b, all]) await one.close();
    },
  },
  {
    title: 'does not deliver a refused write',
    run: async (kit) => {
      await kit.put(kit.key(), 'kept');
      const watched = await watch(kit, kit.prefix);
      await kit.conflict(kit.key(), 'refused', { expect: 'absent' });
      await kit.put(kit.key('end'), 1);
      await watched.until(kit.key('end'), 1);
      assert.notEqual(watched.last(kit.key()), 'refused');
      await watched.close();
    },
  },
  {
    title: 'is silent after it was closed, which can be done twice, and leaves other watchers alone',
    run: async (kit) => {
      const [closed, open] = [await watch(kit, kit.prefix), await watch(kit, kit.prefix)];
      await closed.close();
      await closed.close();
      await kit.put(kit.key(), 1);
      await open.until(kit.key(), 1);
      assert.deepEqual(closed.heard, []);
      await open.close();
    },
  },
  {
    title: 'ends watches when it is closed, also one that is being opened, and opens none from then on',
    unless: (_traits, { virtualTime }) =>
      virtualTime ? 'one object that all share is not at an end for anybody' : undefined,
    run: async (kit) => {
      const beside = await watch(kit, kit.prefix);
      const heard: StateChange[] = [];
      const ends: string[] = [];
      for (const afterMs of [undefined, 0, 1, 2, 4, 8, 16, 32]) {
        const store = await kit.connect();
        const opening = store
          .watch(kit.prefix, (change) => void heard.push(change))
          .then(
            () => 'open',
            (error: unknown) => expectCode(error, 'closed', `a watch closed after ${afterMs} ms`).code,
          );
        if (afterMs !== undefined) await kit.time.pass(afterMs);
        await store.close();
        ends.push(await kit.time.until(opening, WITHIN_MS, 'the end of a watch that was being opened'));
        const late = store.watch(kit.prefix, (change) => void heard.push(change));
        const error: unknown = await late.then(() => undefined).catch((cause: unknown) => cause);
        expectCode(error, 'closed', 'a watch of a store that was closed before');
      }
      assert.equal(ends[0], 'closed');
      await kit.put(kit.key(), 1);
      await beside.until(kit.key(), 1);
      // Stores that poll do so within this.
      await kit.time.pass(300);
      assert.deepEqual(heard, []);
      await beside.close();
    },
  },
];
