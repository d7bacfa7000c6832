/** Cases of the state port: expectations, versions, and writes that are sent again. */
import { assert, expectStatus } from '../assert.js';
import type { StateCase } from './kit.js';

export const writingCases: readonly StateCase[] = [
  {
    title: 'reads nothing where nothing is, and exactly the text that was written',
    run: async (kit) => {
      assert.equal(await kit.get(kit.key()), null);
      const text = '{"b":1,"a":[1e3,0.1,-0,"\\u0000 ä 😀"],"c":  null}';
      const { version } = expectStatus(
        await kit.send({ ...kit.wish(kit.key(), 1), value: text }),
        'written',
        'a write',
      );
      assert.deepEqual(await kit.get(kit.key()), { key: kit.key(), value: text, version });
      assert.deepEqual(await kit.get(kit.key(), await kit.second()), {
        key: kit.key(),
        value: text,
        version,
      });
    },
  },
  {
    title: 'creates where nothing is, and names the version that is there where something is',
    run: async (kit) => {
      const version = await kit.put(kit.key(), 'first', { expect: 'absent' });
      assert.equal(await kit.conflict(kit.key(), 'second', { expect: 'absent' }), version);
      assert.equal(await kit.value(kit.key()), 'first');
    },
  },
  {
    title: 'writes over exactly the version it expects, with a new version every time',
    run: async (kit) => {
      const versions = [await kit.put(kit.key(), 0)];
      for (let n = 1; n <= 5; n += 1) {
        versions.push(await kit.put(kit.key(), n, { expect: { version: versions.at(-1)! } }));
      }
      assert.equal(new Set(versions).size, 6);
      for (const stale of versions.slice(0, -1)) {
        assert.equal(await kit.conflict(kit.key(), 'x', { expect: { version: stale } }), versions.at(-1));
      }
      assert.equal(await kit.value(kit.key()), 5);
    },
  },
  {
    title: '[B71] gives a new version also to a write of the same value',
    run: async (kit) => {
      const first = await kit.put(kit.key(), 'same');
      const second = await kit.put(kit.key(), 'same', { expect: { version: first } });
      assert.notEqual(second, first);
      await kit.conflict(kit.key(), 'same', { expect: { version: first } });
    },
  },
  {
    title: 'answers a version where nothing is with a conflict with nothing',
    run: async (kit) => {
      const version = await kit.put(kit.key(), 1);
      await kit.put(kit.key(), null, { expect: { version } });
      assert.equal(await kit.conflict(kit.key(), 2, { expect: { version } }), null);
      assert.equal(await kit.conflict(kit.key(), null, { expect: { version } }), null);
      assert.equal(await kit.conflict(kit.key('other'), 2, { expect: { version } }), null);
      assert.equal(await kit.get(kit.key()), null);
    },
  },
  {
    title: 'writes and deletes whatever is there where it expects anything',
    run: async (kit) => {
      await kit.put(kit.key(), 1);
      await kit.put(kit.key(), 2);
      assert.equal(await kit.value(kit.key()), 2);
      await kit.put(kit.key(), null);
      assert.equal(await kit.get(kit.key()), null);
    },
  },
  {
    title: 'deletes exactly the version it expects',
    run: async (kit) => {
      const first = await kit.put(kit.key(), 1);
      const second = await kit.put(kit.key(), 2);
      assert.equal(await kit.conflict(kit.key(), null, { expect: { version: first } }), second);
      assert.equal(await kit.value(kit.key()), 2);
      await kit.put(kit.key(), null, { expect: { version: second } });
      assert.equal(await kit.get(kit.key()), null);
    },
  },
  {
    title: '[B180] never uses a version twice: not after a delete, not after an expiry, on no connection',
    run: async (kit) => {
      const connections = [kit.store, await kit.second()];
      const seen = new Set<string>();
      for (let n = 0; n < 20; n += 1) {
        const on = connections[n % 2];
        const version = await kit.put(kit.key(), 'A', { expect: 'absent' }, on);
        assert.ok(!seen.has(version), `version ${version} came again`);
        for (const stale of seen) await kit.conflict(kit.key(), 'C', { expect: { version: stale } }, on);
        seen.add(version);
        seen.add(await kit.put(kit.key(), null, { expect: { version } }, on));
      }
      const last = await kit.put(kit.key(), 'A', { expect: 'absent', ttl: kit.ttlMs });
      await kit.expire();
      assert.equal(await kit.conflict(kit.key(), 'C', { expect: { version: last } }), null);
      const next = await kit.put(kit.key(), 'B', { expect: 'absent' });
      await kit.conflict(kit.key(), 'C', { expect: { version: last } });
      await kit.conflict(kit.key(), null, { expect: { version: last } });
      assert.ok(!seen.has(next) && next !== last);
      assert.equal(await kit.value(kit.key()), 'B');
    },
  },
  {
    title: '[B181] lets a failed compare-and-set fail every time until somebody reads again',
    run: async (kit) => {
      const version = await kit.put(kit.key(), 'start');
      await kit.put(kit.key(), 'b', { expect: { version } }, await kit.second());
      const stale = kit.wish(kit.key(), 'a', { expect: { version } });
      for (let n = 0; n < 4; n += 1) expectStatus(await kit.send(stale), 'conflict', `try ${n}`);
      assert.equal(await kit.value(kit.key()), 'b');
      const entry = await kit.get(kit.key());
      await kit.put(kit.key(), 'a', { expect: { version: entry!.version } });
    },
  },
  {
    title: '[S4] answers a re-sent write with the version of its first sending, and applies it once',
    run: async (kit) => {
      const create = kit.wish(kit.key(), 'a', { expect: 'absent' });
      const first = expectStatus(await kit.send(create), 'written', 'create');
      const again = expectStatus(await kit.send(create, await kit.second()), 'written', 'create, re-sent');
      assert.equal(again.version, first.version);
      const update = kit.wish(kit.key(), 'b', { expect: { version: first.version } });
      const updated = expectStatus(await kit.send(update), 'written', 'update');
      assert.deepEqual(await kit.send(update), updated);
      assert.equal((await kit.get(kit.key()))?.version, updated.version);
      const whatever = kit.wish(kit.key(), 'c');
      const set = expectStatus(await kit.send(whatever), 'written', 'set');
      assert.deepEqual(await kit.send(whatever), set);
    },
  },
  {
    title:
      '[S4] answers a re-sent delete as written, and a re-sent write as conflict once the entry moved on',
    run: async (kit) => {
      const create = kit.wish(kit.key(), 'a', { expect: 'absent' });
      const { version } = expectStatus(await kit.send(create), 'written', 'create');
      const remove = kit.wish(kit.key(), null, { expect: { version } });
      const removed = expectStatus(await kit.send(remove), 'written', 'delete');
      assert.deepEqual(await kit.send(remove), removed);
      assert.equal(await kit.get(kit.key()), null);
      const other = await kit.put(kit.key(), 'other', { expect: 'absent' });
      assert.equal(expectStatus(await kit.send(create), 'conflict', 'create, late').version, other);
      assert.equal(expectStatus(await kit.send(remove), 'conflict', 'delete, late').version, other);
      assert.equal(await kit.value(kit.key()), 'other');
    },
  },
  {
    title: 'lets exactly one of many creates win, and loses no increment, from two connections',
    run: async (kit) => {
      const connections = [kit.store, await kit.second()];
      const creates = Array.from({ length: 20 }, (_, n) =>
        kit.send(kit.wish(kit.key(), 0, { expect: 'absent' }), connections[n % 2]),
      );
      const statuses = (await Promise.all(creates)).map(({ status }) => status);
      assert.equal(statuses.filter((status) => status === 'written').length, 1);
      const rounds = kit.profile === 'quick' ? 10 : 100;
      const increment = async (n: number): Promise<void> => {
        const on = connections[n % 2]!;
        for (let done = 0; done < rounds;) {
          const { value, version } = (await kit.get(kit.key(), on))!;
          const next = kit.wish(kit.key(), (JSON.parse(value) as number) + 1, { expect: { version } });
          if ((await kit.send(next, on)).status === 'written') done += 1;
        }
      };
      await kit.time.until(Promise.all([0, 1, 2, 3, 4].map(increment)), 60_000, 'the increments');
      assert.equal(await kit.value(kit.key()), 5 * rounds);
    },
  },
];
