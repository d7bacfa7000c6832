/** Cases of the state port: batches, keys and large values. */
import { MAX_FULL_KEY_BYTES, MAX_VALUE_BYTES } from '@guard/core';
import { assert, expectStatus } from '../assert.js';
import { longKeys, ODD_KEYS, wideKey } from '../odd-keys.js';
import type { StateCase, StateKit } from './kit.js';

/** A JSON text of exactly so many bytes. */
function jsonOf(bytes: number, character = 'x'): string {
  const size = Buffer.byteLength(character);
  const room = bytes - 2;
  return `"${character.repeat(Math.floor(room / size))}${'y'.repeat(room % size)}"`;
}

async function putText(kit: StateKit, key: string, value: string): Promise<void> {
  const answer = await kit.send({ ...kit.wish(key, 1), value });
  expectStatus(answer, 'written', `a value of ${Buffer.byteLength(value)} bytes`);
}

export const sizingCases: readonly StateCase[] = [
  {
    title:
      'answers a batch in the order of its writes, each by itself: a conflict does not hold up the others',
    run: async (kit) => {
      const { maxBatch } = kit.store.traits;
      assert.ok(Number.isInteger(maxBatch) && maxBatch >= 1, 'maxBatch is a positive integer');
      if (maxBatch < 3) return;
      await kit.put(kit.key('b'), 'there');
      const answers = await kit.store.write([
        kit.wish(kit.key('a'), 1, { expect: 'absent' }),
        kit.wish(kit.key('b'), 2, { expect: 'absent' }),
        kit.wish(kit.key('c'), 3, { expect: 'absent' }),
      ]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        ['written', 'conflict', 'written'],
      );
      const entries = await kit.store.read(['c', 'none', 'b', 'a'].map((name) => kit.key(name)));
      assert.deepEqual(
        entries.map((entry) => entry?.value),
        ['3', undefined, '"there"', '1'],
      );
    },
  },
  {
    title: 'takes maxBatch writes and reads in one call',
    run: async (kit) => {
      const size = Math.min(kit.store.traits.maxBatch, kit.profile === 'quick' ? 2_048 : 20_000);
      const keys = Array.from({ length: size }, (_, n) => kit.key(`n${String(n).padStart(6, '0')}`));
      const answers = await kit.store.write(keys.map((key, n) => kit.wish(key, n)));
      assert.ok(answers.length === size && answers.every(({ status }) => status === 'written'));
      const entries = await kit.store.read(keys);
      assert.deepEqual(
        entries.map((entry) => entry?.value),
        keys.map((_, n) => String(n)),
      );
    },
  },
  {
    title: 'puts a key into one partition from any connection, and takes keys of many partitions in one call',
    run: async (kit) => {
      const size = Math.min(kit.store.traits.maxBatch, 64);
      const keys = Array.from({ length: size }, (_, n) => kit.key(`p${n}`));
      const second = await kit.second();
      const partitions = keys.map((key) => kit.store.partition?.(key));
      assert.deepEqual(
        keys.map((key) => second.partition?.(key)),
        partitions,
      );
      const answers = await kit.store.write(keys.map((key, n) => kit.wish(key, n)));
      assert.ok(answers.every(({ status }) => status === 'written'));
      const entries = await second.read(keys);
      assert.deepEqual(
        entries.map((entry) => entry?.value),
        keys.map((_, n) => String(n)),
      );
    },
  },
  {
    title: '[B159] [B162] keeps odd keys apart, byte by byte',
    run: async (kit) => {
      for (const [n, name] of ODD_KEYS.entries()) await kit.put(kit.key(name), n, { expect: 'absent' });
      for (const [n, name] of ODD_KEYS.entries()) assert.equal(await kit.value(kit.key(name)), n);
      for (const name of ODD_KEYS) await kit.put(kit.key(name), null);
      assert.deepEqual(await kit.scanAll(kit.prefix, 1_000), []);
    },
  },
  {
    title: '[B160] [B87] keeps keys up to their full length, which differ in the last byte',
    run: async (kit) => {
      for (const bytes of [255, 256, 1_024, MAX_FULL_KEY_BYTES]) {
        const [a, b] = longKeys(kit.key(), bytes);
        await kit.put(a, 'a', { expect: 'absent' });
        await kit.put(b, 'b', { expect: 'absent' });
        assert.deepEqual([await kit.value(a), await kit.value(b)], ['a', 'b']);
      }
      const wide = wideKey(kit.key(), MAX_FULL_KEY_BYTES);
      await kit.put(wide, 'wide', { expect: 'absent' });
      assert.equal(await kit.value(wide), 'wide');
      assert.ok((await kit.scanAll(kit.prefix, 3)).some(({ key }) => key === wide));
    },
  },
  {
    title: '[B183] keeps values up to a mebibyte, exactly, in any characters',
    run: async (kit) => {
      for (const character of ['x', 'ä', '😀']) {
        const text = jsonOf(MAX_VALUE_BYTES, character);
        assert.equal(Buffer.byteLength(text), MAX_VALUE_BYTES);
        await putText(kit, kit.key(), text);
        // Compared outside of the assertion: its message would print two mebibytes.
        assert.ok((await kit.get(kit.key()))?.value === text, `a mebibyte of ${character} came back changed`);
      }
    },
  },
  {
    title: '[B183] lists large values in pages, complete, and tells watchers of one',
    run: async (kit) => {
      const heard: number[] = [];
      const watch = await kit.store.watch(kit.key('w'), ({ entry }) => {
        if (entry !== null) heard.push(entry.value.length);
      });
      const text = jsonOf(MAX_VALUE_BYTES);
      for (let n = 0; n < 6; n += 1) await putText(kit, kit.key(`v${n}`), text);
      await putText(kit, kit.key('w'), text);
      const found = await kit.scanAll(kit.key('v'), 2);
      assert.ok(found.length === 6 && found.every(({ value }) => value === text));
      await kit.time.untilTrue(() => heard.includes(text.length), 5_000, 'news of a large value');
      await watch.close();
    },
  },
  {
    title: '[B183] lists six thousand entries of a kilobyte',
    run: async (kit) => {
      const count = kit.profile === 'quick' ? 1_000 : 6_000;
      const text = jsonOf(1_024);
      const size = Math.min(kit.store.traits.maxBatch, 100);
      for (let from = 0; from < count; from += size) {
        const names = Array.from({ length: Math.min(size, count - from) }, (_, n) => from + n);
        await kit.store.write(names.map((n) => ({ ...kit.wish(kit.key(`v${10_000 + n}`), 1), value: text })));
      }
      const found = await kit.scanAll(kit.key('v'), 500);
      assert.ok(found.length === count && found.every(({ value }) => value === text));
    },
  },
];
