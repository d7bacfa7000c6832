/** A server whose quota is used up: what is held stays held and can be given back, and nothing new is granted. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf, reasons, until } from '@guard/testing';
import { startEtcd } from '@guard/testing/servers';
import type { Etcd3, IOptions } from 'etcd3';
import { keysOf, Stage } from './support/stage.js';

type HostPolicy = ReturnType<NonNullable<NonNullable<IOptions['faultHandling']>['host']>>;

/** Without the client's own breaker, which would shut the only host for five seconds after three refusals. */
const unbroken = {
  faultHandling: { host: () => ({ execute: async (run: () => unknown) => run() }) as unknown as HostPolicy },
};

const SMALL = ['--quota-backend-bytes', String(8 * 1_048_576)];

/** Writes until the server refuses, and answers why it does. */
async function fill(filler: Etcd3): Promise<unknown> {
  const value = Buffer.alloc(1_048_576, 'x');
  let refusal: unknown;
  for (let n = 0; n < 30 && refusal === undefined; n += 1) {
    await filler
      .put(`fill ${n}`)
      .value(value)
      .catch((error: unknown) => (refusal = error));
  }
  return refusal;
}

/** What an operator does: compact, defragment, disarm. */
async function makeSpace(filler: Etcd3): Promise<void> {
  await filler.delete().prefix('fill');
  const { header } = await filler.kv.range({ key: Buffer.from('any') });
  await filler.kv.compact({ revision: header.revision, physical: true });
  await filler.maintenance.defragment();
  const { alarms } = await filler.maintenance.alarm({ action: 'Get' });
  for (const { memberID, alarm } of alarms) {
    await filler.maintenance.alarm({ action: 'Deactivate', memberID, alarm });
  }
}

describe('A server without space', () => {
  it('[S6] [B29] renews and releases what is held, says unavailable to new claims, never busy, and serves them once there is space', async () => {
    await using stage = new Stage();
    await using group = await startEtcd({ onDisk: false, args: SMALL });
    const { guard } = stage.process(group.urls, unbroken);
    const filler = stage.client(group.urls, unbroken);
    const lock = await guard.acquire('held', { ttl: '2s' });
    expect(String(await fill(filler))).toMatch(/space exceeded/);
    await sleep(3_000);
    expect(lock.isHeld()).toBe(true);
    const error = await failureOf(guard.acquire('new', { wait: '500ms' }));
    expect(error.code).toBe('unavailable');
    expect(reasons(error)).toMatch(/space exceeded/);
    expect(await lock.release()).toBe('released');
    expect((await guard.inspect('held')).held).toBe(false);
    await makeSpace(filler);
    // The guard goes on as it is.
    expect((await guard.acquire('new', { wait: '20s' })).isHeld()).toBe(true);
  });

  it('[S5] [B29] refuses to extend a lock, which stays held for as long as it was to be', async () => {
    await using stage = new Stage();
    await using group = await startEtcd({ onDisk: false, args: SMALL });
    const { guard } = stage.process(group.urls, unbroken);
    const filler = stage.client(group.urls, unbroken);
    // The lease that it would move to is there.
    await guard.acquire('long', { ttl: '60s' });
    const lock = await guard.acquire('held', { ttl: '3s' });
    expect(String(await fill(filler))).toMatch(/space exceeded/);
    expect((await failureOf(lock.extend('60s'))).code).toBe('unavailable');
    await sleep(4_000);
    expect(lock.isHeld()).toBe(true);
    expect(await lock.release()).toBe('released');
  });

  it('[L2] [B29] takes back a lock whose releaser knows who is next, and leaves its other locks alone', async () => {
    await using stage = new Stage();
    await using group = await startEtcd({ onDisk: false, args: SMALL });
    const [a, b, c] = [1, 2, 3].map(() => stage.process(group.urls, unbroken).guard);
    const filler = stage.client(group.urls, unbroken);
    const kept = await b!.acquire('kept', { ttl: '6s' });
    const first = await a!.acquire('one', { ttl: '6s' });
    const stand = async (count: number): Promise<boolean> =>
      (await keysOf(filler, stage.namespace, 'one')).length === count;
    const second = b!.acquire('one', { ttl: '6s', wait: '60s' });
    await until('the second', () => stand(2));
    const third = c!.acquire('one', { ttl: '6s', wait: '60s' });
    await until('the third', () => stand(3));
    await first.release();
    const lock = await second;
    expect(String(await fill(filler))).toMatch(/space exceeded/);
    expect(await lock.release()).toBe('released');
    expect((await b!.inspect('one')).token).toBeGreaterThan(lock.token);
    expect(kept.isHeld()).toBe(true);
    await makeSpace(filler);
    expect((await third).token).toBeGreaterThan(lock.token);
  });
});
