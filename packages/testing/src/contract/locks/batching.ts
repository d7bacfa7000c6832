/** Cases of the lock port: many operations in one call. */
import type { LeaseRef } from '@guard/core';
import { SeededRandom } from '../../clock/seeded-random.js';
import { assert, expectStatus } from '../assert.js';
import type { LockCase, LockKit } from './kit.js';

/** A batch as large as the adapter takes, at most `most`. */
function largest(kit: LockKit, most: number, limit = kit.traits.maxBatch): number {
  return Math.min(limit, most);
}

function statuses(answers: readonly { readonly status: string }[]): string[] {
  return answers.map(({ status }) => status);
}

export const batchingCases: readonly LockCase[] = [
  {
    title: 'answer in the order of the operations, each by itself',
    run: async (kit) => {
      const [free, held, cancelled] = kit.keysOfOnePartition(3);
      if (kit.traits.maxBatch < 3) return assert.ok(kit.traits.maxBatch >= 1);
      await kit.grant(kit.claim(held!));
      const given = kit.claim(cancelled!);
      await kit.cancel(given);
      const answers = await kit.backend.acquire([kit.claim(free!), kit.claim(held!), given]);
      assert.deepEqual(statuses(answers), ['granted', 'busy', 'cancelled']);
    },
  },
  {
    title: 'take maxBatch operations of each verb in one call, maxRenew renewals',
    run: async (kit) => {
      const most = kit.profile === 'quick' ? 2_048 : 20_000;
      const keys = kit.keysOfOnePartition(largest(kit, most));
      const claims = keys.map((key) => kit.claim(key, { ttlMs: 60_000 }));
      const granted = await kit.backend.acquire(claims);
      assert.deepEqual(new Set(statuses(granted)), new Set(['granted']));
      assert.equal(granted.length, keys.length);
      const leases = claims.map(({ key, id, session }, index) => {
        const answer = granted[index]!;
        return { key, claim: id, session, token: answer.status === 'granted' ? answer.token : 0n };
      });
      assert.deepEqual(
        new Set(statuses(await kit.backend.renew(leases.map((lease) => ({ ...lease, ttlMs: 60_000 }))))),
        new Set(['renewed']),
      );
      assert.deepEqual(new Set(statuses(await kit.backend.release(leases))), new Set(['released']));
      assert.deepEqual(new Set(statuses(await kit.backend.release(leases))), new Set(['lost']));
    },
  },
  {
    title: 'take maxRenew renewals in one call, where that is more than maxBatch',
    unless: ({ maxBatch, maxRenew = maxBatch }) =>
      maxRenew > maxBatch ? undefined : 'maxRenew is not above maxBatch',
    run: async (kit) => {
      const size = largest(kit, 20_000, kit.traits.maxRenew);
      const claims = kit.keysOfOnePartition(size).map((key) => kit.claim(key, { ttlMs: 600_000 }));
      const leases: LeaseRef[] = [];
      for (let start = 0; start < size; start += kit.traits.maxBatch) {
        const some = claims.slice(start, start + kit.traits.maxBatch);
        for (const [n, answer] of (await kit.backend.acquire(some)).entries()) {
          const { token } = expectStatus(answer, 'granted', 'acquire');
          const { key, id, session } = some[n]!;
          leases.push({ key, claim: id, session, token });
        }
      }
      const answers = await kit.backend.renew(leases.map((lease) => ({ ...lease, ttlMs: 600_000 })));
      assert.equal(answers.length, size);
      assert.deepEqual(new Set(statuses(answers)), new Set(['renewed']));
    },
  },
  {
    title: 'mix releases and cancels of grants, and answer each',
    run: async (kit) => {
      const [a, b, c] = kit.keysOfOnePartition(3);
      if (kit.traits.maxBatch < 3) return assert.ok(kit.traits.maxBatch >= 1);
      const first = await kit.grant(kit.claim(a!));
      const second = await kit.grant(kit.claim(b!));
      const { session, id } = second.claim;
      const answers = await kit.backend.release([
        first.ref,
        { cancel: true, key: b!, claim: id, session, tombstoneMs: 60_000 },
        { ...first.ref, key: c! },
      ]);
      assert.deepEqual(statuses(answers), ['released', 'released', 'lost']);
      await kit.grant(kit.claim(a!));
      await kit.grant(kit.claim(b!));
    },
  },
  {
    title: '[S1] overlap from two connections without a deadlock and without a double grant',
    run: async (kit) => {
      const random = new SeededRandom();
      const keys = kit.keysOfOnePartition(64);
      const size = largest(kit, 25);
      const owners = new Map<string, string>();
      const rounds = kit.profile === 'quick' ? 15 : 200;
      const worker = async (name: string, on: typeof kit.backend): Promise<void> => {
        for (let round = 0; round < rounds; round += 1) {
          const chosen = keys.filter(() => random.fraction() < size / keys.length).slice(0, size);
          if (chosen.length === 0) continue;
          const claims = chosen.map((key) => kit.claim(key, { ttlMs: 60_000 }));
          const answers = await on.acquire(claims);
          const leases = claims.flatMap(({ key, id, session }, index) => {
            const answer = answers[index]!;
            if (answer.status !== 'granted') return [];
            assert.equal(owners.get(key), undefined, `${key} granted to ${name} too (seed ${random.seed})`);
            owners.set(key, name);
            return [{ key, claim: id, session, token: answer.token }];
          });
          for (const { key } of leases) owners.delete(key);
          if (leases.length > 0) {
            assert.deepEqual(new Set(statuses(await on.release(leases))), new Set(['released']));
          }
        }
      };
      const second = await kit.second();
      const workers = [1, 2, 3, 4].map((n) => worker(`worker ${n}`, n % 2 === 0 ? kit.backend : second));
      const withinMs = kit.profile === 'quick' ? 30_000 : 300_000;
      await kit.time.until(Promise.all(workers), withinMs, 'overlapping batches');
    },
  },
];
