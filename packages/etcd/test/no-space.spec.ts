/** A server whose quota is used up: what is held stays held and can be given back, and nothing new is granted. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf, reasons } from '@guard/testing';
import { startEtcd } from '@guard/testing/servers';
import type { IOptions } from 'etcd3';
import { Stage } from './support/stage.js';

type HostPolicy = ReturnType<NonNullable<NonNullable<IOptions['faultHandling']>['host']>>;

/** Without the client's own breaker, which would shut the only host for five seconds after three refusals. */
const unbroken = {
  faultHandling: { host: () => ({ execute: async (run: () => unknown) => run() }) as unknown as HostPolicy },
};

describe('A server without space', () => {
  it('[S6] [B29] renews and releases what is held, says unavailable to new claims, never busy, and serves them once there is space', async () => {
    await using stage = new Stage();
    await using group = await startEtcd({
      onDisk: false,
      args: ['--quota-backend-bytes', String(8 * 1_048_576)],
    });
    const { guard } = stage.process(group.urls, unbroken);
    const filler = stage.client(group.urls, unbroken);
    const lock = await guard.acquire('held', { ttl: '2s' });
    const value = Buffer.alloc(1_048_576, 'x');
    let refusal: unknown;
    for (let n = 0; n < 30 && refusal === undefined; n += 1) {
      await filler
        .put(`fill ${n}`)
        .value(value)
        .catch((error: unknown) => (refusal = error));
    }
    expect(String(refusal)).toMatch(/space exceeded/);
    await sleep(3_000);
    expect(lock.isHeld()).toBe(true);
    const error = await failureOf(guard.acquire('new', { wait: '500ms' }));
    expect(error.code).toBe('unavailable');
    expect(reasons(error)).toMatch(/space exceeded/);
    expect(await lock.release()).toBe('released');
    expect((await guard.inspect('held')).held).toBe(false);
    // What an operator does: compact, defragment, disarm. The guard goes on as it is.
    await filler.delete().prefix('fill');
    const { header } = await filler.kv.range({ key: Buffer.from('any') });
    await filler.kv.compact({ revision: header.revision, physical: true });
    await filler.maintenance.defragment();
    const { alarms } = await filler.maintenance.alarm({ action: 'Get' });
    for (const { memberID, alarm } of alarms) {
      await filler.maintenance.alarm({ action: 'Deactivate', memberID, alarm });
    }
    expect((await guard.acquire('new', { wait: '20s' })).isHeld()).toBe(true);
  });
});
