/** Cases of the state port: listings. */
import { assert } from '../assert.js';
import { ODD_KEYS } from '../odd-keys.js';
import type { StateCase, StateKit } from './kit.js';

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

async function keysBelow(kit: StateKit, prefix: string, limit = 100): Promise<string[]> {
  return (await kit.scanAll(prefix, limit)).map(({ key }) => key);
}

/** Writes many entries in batches. */
async function fill(kit: StateKit, names: readonly string[], value: unknown = 1): Promise<void> {
  const size = Math.min(kit.store.traits.maxBatch, 100);
  for (let from = 0; from < names.length; from += size) {
    const answers = await kit.store.write(
      names.slice(from, from + size).map((name) => kit.wish(kit.key(name), value)),
    );
    assert.ok(answers.every(({ status }) => status === 'written'));
  }
}

export const scanningCases: readonly StateCase[] = [
  {
    title: 'lists entries with value, version and remaining time, and nothing below a foreign prefix',
    run: async (kit) => {
      const version = await kit.put(kit.key('a'), 'x');
      await kit.put(kit.key('b'), 'y', { ttl: kit.ttlMs });
      const [first, second, ...more] = await kit.scanAll(kit.prefix, 10);
      assert.deepEqual(first, { key: kit.key('a'), value: '"x"', version });
      assert.equal(second?.key, kit.key('b'));
      assert.ok(second.expiresInMs !== undefined && more.length === 0);
      assert.deepEqual(await kit.scanAll(kit.key('none'), 10), []);
    },
  },
  {
    title: '[B179] takes a prefix for exactly these bytes, never for a pattern',
    run: async (kit) => {
      const spaces = ['app', 'app2', 'a_p', 'a%', 'a*', 'a[1]', 'a?', 'APP', 'a\\'];
      const names = ['x', 'x1', 'x_1', 'X'];
      await fill(
        kit,
        spaces.flatMap((space) => names.map((name) => `${space}/${name}`)),
      );
      for (const space of spaces) {
        const at = (name: string): string => kit.key(`${space}/${name}`);
        assert.deepEqual(await keysBelow(kit, at('x')), [at('x'), at('x1'), at('x_1')]);
        assert.deepEqual(await keysBelow(kit, at('x_')), [at('x_1')]);
        assert.deepEqual(await keysBelow(kit, at('')), [at('X'), at('x'), at('x1'), at('x_1')]);
      }
      for (const space of spaces) {
        for (const key of await keysBelow(kit, kit.key(`${space}/`))) await kit.put(key, null);
        assert.deepEqual(await keysBelow(kit, kit.key(`${space}/`)), []);
        const left = spaces.length - spaces.indexOf(space) - 1;
        assert.equal((await keysBelow(kit, kit.prefix)).length, left * names.length);
      }
    },
  },
  {
    title: '[B162] lists odd keys exactly, in the order of their bytes',
    run: async (kit) => {
      await fill(kit, ODD_KEYS);
      const expected = ODD_KEYS.map((name) => kit.key(name)).sort(byBytes);
      for (const limit of [7, 1_000]) assert.deepEqual(await keysBelow(kit, kit.prefix, limit), expected);
    },
  },
  {
    title: 'ends exactly at the prefix, also where its last character has no successor',
    run: async (kit) => {
      const names = ['a', 'a\u{10ffff}', 'a\u{10ffff}\u{10ffff}', 'a\u{10ffff}b', 'b', 'a\uffff', 'a\ud7ff'];
      await fill(kit, names);
      const below = names.filter((name) => name.startsWith('a\u{10ffff}'));
      assert.deepEqual(
        await keysBelow(kit, kit.key('a\u{10ffff}')),
        below.map((name) => kit.key(name)).sort(byBytes),
      );
      assert.deepEqual(await keysBelow(kit, kit.key('a\uffff')), [kit.key('a\uffff')]);
      assert.equal((await keysBelow(kit, kit.key('a'))).length, 6);
    },
  },
  {
    title: '[B179] pages through many entries, each once, complete and in order',
    run: async (kit) => {
      const count = kit.profile === 'quick' && !kit.time.virtual ? 2_000 : 5_000;
      const names = Array.from({ length: count }, (_, n) => `e${String(n).padStart(5, '0')}`);
      await fill(kit, names);
      await kit.put(kit.key('f'), 1);
      const found = await kit.time.until(keysBelow(kit, kit.key('e'), 300), 30_000, 'the listing');
      assert.deepEqual(
        found,
        names.map((name) => kit.key(name)),
      );
    },
  },
  {
    title: 'says by the absence of a cursor that a page is the last, also where it is exactly full',
    run: async (kit) => {
      await fill(kit, ['a1', 'a2', 'a3', 'a4']);
      const first = await kit.store.scan(kit.key('a'), undefined, 2);
      assert.notEqual(first.cursor, undefined);
      let pages = 1;
      let seen = first.entries.length;
      for (let { cursor } = first; cursor !== undefined; pages += 1) {
        const page = await kit.store.scan(kit.key('a'), cursor, 2);
        seen += page.entries.length;
        cursor = page.cursor;
      }
      assert.equal(seen, 4);
      assert.ok(pages === 2 || pages === 3, `${pages} pages for two full ones`);
    },
  },
  {
    title: 'keeps a cursor valid while entries come and go, and shows every entry that stayed exactly once',
    run: async (kit) => {
      const stay = Array.from({ length: 20 }, (_, n) => `s${String(n).padStart(2, '0')}`);
      await fill(kit, stay);
      const seen: string[] = [];
      let cursor: string | undefined;
      for (let page = 0; ; page += 1) {
        const { entries, cursor: next } = await kit.store.scan(kit.prefix, cursor, 3);
        seen.push(...entries.map(({ key }) => key));
        if (next === undefined) break;
        cursor = next;
        // Beside the last entry seen, beside the next one, and that one itself.
        await fill(kit, [`s${String(page).padStart(2, '0')}x`, `a${page}`, `z${page}`]);
        if (page === 1) for (const name of ['s06', 's07', 's05']) await kit.put(kit.key(name), null);
        assert.ok(page < 100, 'the listing does not end');
      }
      const left = stay.filter((name) => !['s06', 's07', 's05'].includes(name)).map((name) => kit.key(name));
      assert.deepEqual(
        seen.filter((key) => left.includes(key)),
        left,
      );
      assert.equal(new Set(seen).size, seen.length, 'an entry came twice');
    },
  },
  {
    title: 'leaves out what was deleted and what expired',
    run: async (kit) => {
      await fill(kit, ['a', 'b', 'd']);
      await kit.put(kit.key('c'), 1, { ttl: kit.ttlMs });
      await kit.put(kit.key('b'), null);
      await kit.expire();
      assert.deepEqual(await keysBelow(kit, kit.prefix, 1), [kit.key('a'), kit.key('d')]);
    },
  },
];
