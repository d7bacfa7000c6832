/** A server whose quota is used up: what is held stays held and can be given back, and nothing new is granted. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf } from '@guard/testing';
import { startEtcd } from '@guard/testing/servers';
import type { IOptions } from 'etcd3';
import { Stage } from './support/stage.js';

type HostPolicy = ReturnType<NonNullable<NonNullable<IOptions['faultHandling']>['host']>>;

/** Lets everything pass. */
const open = { execute: async (run: () => unknown) => run() } as unknown as HostPolicy;

describe('A server without space', () => {
  it('[S6] [B55] renews and releases what is held, and says unavailable to new claims, never busy', async () => {
    await using stage = new Stage();
    await using group = await startEtcd({
      onDisk: false,
      args: ['--quota-backend-bytes', String(8 * 1_048_576)],
    });
    // The client's own breaker would shut the only host for five seconds after three refusals, renewals included.
    const { guard } = stage.process(group.urls, { faultHandling: { host: () => open } });
    const filler = stage.client(group.urls);
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
    expect(await lock.release()).toBe('released');
    expect((await guard.inspect('held')).held).toBe(false);
  });
});
