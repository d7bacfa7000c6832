/**
 * Several processes on one file: real ones, which are killed and stopped, and whose logs are laid side by side by the
 * machine's clock.
 */
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Claim } from '@guard/core';
import { SeededRandom } from '@guard/testing';
import { typeormState } from '@guard/typeorm';
import type { Order } from './process/operate.js';
import { endChildren, startChild } from './support/child.js';
import { shell } from './support/drivers.js';
import { claim } from './support/locking.js';
import { newPlace, type Place } from './support/place.js';

jest.setTimeout(60_000);

let place: Place;

beforeEach(() => {
  place = newPlace();
});

afterEach(async () => {
  await endChildren();
  place.remove();
});

interface Held {
  readonly key: string;
  readonly token: bigint;
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** What the processes held, by key and time. One that was killed inside has no end. */
function heldIn(logs: readonly string[]): Held[] {
  const held = new Map<string, Held>();
  for (const line of logs.flatMap((log) => readFileSync(log, 'utf8').trim().split('\n'))) {
    const { what, key, token, ns } = JSON.parse(line) as Record<'what' | 'key' | 'token' | 'ns', string>;
    const name = `${key} ${token}`;
    const before = held.get(name);
    const fromNs = what === 'enter' ? BigInt(ns) : before!.fromNs;
    held.set(name, { key, token: BigInt(token), fromNs, toNs: BigInt(ns) });
  }
  return [...held.values()].sort((a, b) => (a.fromNs < b.fromNs ? -1 : 1));
}

async function operator(input: { readonly wallShiftMs?: number } = {}, uid?: number) {
  const child = startChild('operate.ts', { file: place.file, ...input }, uid === undefined ? {} : { uid });
  await child.next();
  const order = async <T = Record<string, unknown>>(wish: Order): Promise<T> => {
    child.tell(wish);
    return child.next<T>();
  };
  return { child, order, acquire: (wanted: Claim) => order({ do: 'acquire', claim: wanted }) };
}

describe('processes', () => {
  const { seed } = new SeededRandom();
  it(`[S1] [S2] never hold one key at the same time, and tokens grow in that order, also over a kill (GUARD_SEED=${seed})`, async () => {
    const logs = [0, 1, 2, 3].map((n) => join(place.folder, `log ${n}`));
    const children = logs.map((log, n) =>
      startChild('hammer.ts', { file: place.file, log, keys: 3, seed: seed + n }),
    );
    await Promise.all(children.map((child) => child.next()));
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    children[0]!.signal('SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    for (const child of children.slice(1)) child.tell('stop');
    const ends = await Promise.all(children.slice(1).map((child) => child.next()));
    expect(ends).toEqual([{ failures: 0 }, { failures: 0 }, { failures: 0 }]);
    for (const child of children.slice(1)) await child.finish();
    const all = heldIn(logs);
    expect(all.length).toBeGreaterThan(100);
    for (const key of new Set(all.map((one) => one.key))) {
      const ofKey = all.filter((one) => one.key === key);
      for (const [n, one] of ofKey.entries()) {
        if (n === 0) continue;
        const before = ofKey[n - 1]!;
        expect(one.fromNs).toBeGreaterThanOrEqual(before.toNs);
        expect(one.token).toBeGreaterThan(before.token);
      }
    }
  });

  it('[B60] with wall clocks three minutes apart agree on every lease, and on the end of a killed holder’s', async () => {
    const holder = await operator();
    const fast = await operator({ wallShiftMs: 180_000 });
    const slow = await operator({ wallShiftMs: -180_000 });
    const long = claim({ ttlMs: 60_000 });
    const first = await holder.acquire(long);
    expect(first).toMatchObject({ status: 'granted' });
    expect(await fast.acquire(claim())).toMatchObject({ status: 'busy' });
    expect(await slow.acquire(claim())).toMatchObject({ status: 'busy' });
    const lease = { key: long.key, claim: long.id, session: long.session, token: first['token'] as string };
    expect(await holder.order({ do: 'release', lease })).toBe('released');
    const short = await slow.acquire(claim({ ttlMs: 2_000 }));
    const killedAtMs = performance.now();
    expect(BigInt(short['token'] as string)).toBeGreaterThan(BigInt(first['token'] as string));
    slow.child.signal('SIGKILL');
    const wanted = claim({ wait: true });
    let answer = await holder.acquire(wanted);
    while (answer['status'] !== 'granted') {
      await new Promise((resolve) => setTimeout(resolve, 20));
      answer = await holder.acquire(wanted);
    }
    expect(performance.now() - killedAtMs).toBeGreaterThan(1_800);
    expect(performance.now() - killedAtMs).toBeLessThan(4_500);
  });

  it('make a new file together, and meet in it', async () => {
    const all = await Promise.all([operator(), operator(), operator()]);
    const answers = await Promise.all(all.map(({ acquire }) => acquire(claim())));
    expect(answers.map(({ status }) => status).sort()).toEqual(['busy', 'busy', 'granted']);
  });

  it('[B67] [B181] lose no increment, and a version that was raised by hand is a conflict', async () => {
    const state = typeormState(place.dataSource());
    const write = { key: 'n', value: '0', expect: 'absent', ttl: 'none' } as const;
    await state.write([{ ...write, writeId: 'first' }]);
    const children = [0, 1, 2].map(() => startChild('count.ts', { file: place.file, key: 'n', times: 100 }));
    await Promise.all(children.map((child) => child.next()));
    for (const child of children) await child.finish();
    const [entry] = await state.read(['n']);
    expect(entry!.value).toBe('300');
    const byHand = shell(`${place.file}-guard`);
    byHand.exec("UPDATE guard_entry SET version = version + 1 WHERE key = 'n'");
    byHand.close();
    const stale = { ...write, value: '1', expect: { version: entry!.version }, writeId: 'stale' };
    expect(await state.write([stale])).toMatchObject([{ status: 'conflict' }]);
    await state.close();
  });

  it('[B88] without the right to write get a fault, never busy, and go on once they have it', async () => {
    // The administrator may write everywhere, so the child gives that up where the test has it.
    const uid = process.getuid?.() === 0 ? 65_534 : undefined;
    const state = typeormState(place.dataSource());
    await state.write([{ key: 'k', value: '1', expect: 'absent', writeId: 'w', ttl: 'none' }]);
    await state.close();
    const files = ['', '-wal', '-shm'].map((end) => `${place.file}-guard${end}`);
    chmodSync(place.folder, 0o555);
    chmodSync(files[0]!, 0o444);
    const poor = await operator({}, uid);
    const answer = await poor.acquire(claim());
    expect(answer).toMatchObject({ status: 'failed', cause: { code: expect.stringMatching(/^SQLITE_/) } });
    const write = { key: 'x', value: '1', expect: 'any', writeId: 'w2', ttl: 'none' } as const;
    expect(await poor.order({ do: 'write', write })).toMatchObject({ status: 'failed' });
    chmodSync(place.folder, 0o777);
    chmodSync(files[0]!, 0o666);
    expect(await poor.acquire(claim())).toMatchObject({ status: 'granted' });
    expect(await poor.order({ do: 'write', write })).toMatchObject({ status: 'written' });
    poor.child.tell({ do: 'end' });
    await poor.child.finish();
  });
});
