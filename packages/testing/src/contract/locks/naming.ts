/** Cases of the lock port: keys are compared byte by byte, up to their full length. */
import { MAX_FULL_KEY_BYTES } from '@guard/core';
import { assert, expectStatus } from '../assert.js';
import { longKeys, ODD_KEYS, wideKey } from '../odd-keys.js';
import { unlessPush, type LockCase } from './kit.js';

export const namingCases: readonly LockCase[] = [
  {
    title: '[B159] [B162] are each themselves: odd ones are held side by side, and come back exactly',
    run: async (kit) => {
      const ttlMs = 60_000;
      const held = [];
      for (const name of ODD_KEYS) held.push(await kit.grant(kit.claim(kit.key(name), { ttlMs })));
      for (const name of ODD_KEYS) await kit.busy(kit.key(name));
      const keys = ODD_KEYS.map((name) => kit.key(name));
      const infos = await kit.backend.inspect({ keys });
      assert.deepEqual(
        infos.map(({ key, token }) => [key, token]),
        held.map(({ claim, token }) => [claim.key, token]),
      );
      for (const { ref } of held) expectStatus(await kit.release(ref), 'released', `release of ${ref.key}`);
      for (const name of ODD_KEYS) await kit.grant(kit.claim(kit.key(name)));
    },
  },
  {
    title: '[B160] [B87] work up to the full length, and differ in the last byte',
    run: async (kit) => {
      for (const bytes of [255, 256, 512, 1_024, MAX_FULL_KEY_BYTES]) {
        const [held, free] = longKeys(kit.key(), bytes);
        assert.equal(Buffer.byteLength(held), bytes);
        const { ref } = await kit.grant(kit.claim(held));
        await kit.busy(held);
        const other = await kit.grant(kit.claim(free));
        expectStatus(await kit.renew(ref), 'renewed', 'renewal');
        expectStatus(await kit.release(ref), 'released', 'release');
        expectStatus(await kit.release(other.ref), 'released', 'release');
      }
    },
  },
  {
    title: '[B160] count in bytes: characters of four bytes up to the full length',
    run: async (kit) => {
      const key = wideKey(kit.key(), MAX_FULL_KEY_BYTES);
      assert.equal(Buffer.byteLength(key), MAX_FULL_KEY_BYTES);
      await kit.grant(kit.claim(key));
      await kit.busy(key);
      assert.equal((await kit.info(key)).held, true);
    },
  },
  {
    title: '[B160] wake waiters up to the full length, and with odd characters',
    unless: unlessPush,
    run: async (kit) => {
      const long = wideKey(kit.key(), MAX_FULL_KEY_BYTES);
      for (const key of [long, kit.key("it's {odd}\n%_*"), kit.key('\u{10ffff}')]) {
        const held = await kit.grant(kit.claim(key));
        const claim = kit.claim(key);
        const heard: string[] = [];
        const subscription = await kit.backend.subscribe!(claim.session, (notice) => {
          if (notice.type === 'granted') heard.push(notice.key);
        });
        await kit.queue(claim);
        await kit.release(held.ref);
        await kit.time.untilTrue(() => heard.length > 0, 2_000, `a notice for ${key}`);
        assert.equal(heard[0], key);
        await subscription.close();
      }
    },
  },
];
