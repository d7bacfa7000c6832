/** How long the fence of an entry stands, as the server says it: never shorter than the entry. */
import type { StateWrite } from '@guard/core';
import { etcdState } from '../src/index.js';
import { beforeTimes, leaseOf, secondsOf, wish, written } from './support/entries.js';
import { server, stopServer } from './support/place.js';
import { Stage, type Process } from './support/stage.js';

afterAll(stopServer);

const HOUR = 3_600;
const SMALL = '"small"';
const LARGE = JSON.stringify('x'.repeat(20_000));

function under(token: bigint): Pick<StateWrite, 'fence'> {
  return { fence: { lock: 'etcd|lock/a', token } };
}

/** A process, a key of its own, and the name of the fence of that. */
async function placed(stage: Stage): Promise<Process & { readonly key: string; readonly fence: string }> {
  const key = `${stage.namespace}/state/k`;
  return { ...stage.process((await server()).urls), key, fence: `guard/f/${key}` };
}

const values = [
  ['small', SMALL],
  ['large', LARGE],
] as const;
const sets: readonly (readonly [string, Partial<StateWrite>])[] = [
  ['under a token', under(11n)],
  ['without a token', {}],
  ['under a token where nothing may be there', { expect: 'absent', ...under(11n) }],
  ['without a token where nothing may be there', { expect: 'absent' }],
];

describe.each(values)('[S2] The fence that a deleted entry left lasts as long as a %s one', (_, value) => {
  it.each(sets)(
    'that is set anew %s, so a stale holder is refused for as long as it stands',
    async (__, how) => {
      await using stage = new Stage();
      const { state, client, key, fence } = await placed(stage);
      await written(state, wish(key, SMALL, under(10n)));
      expect(await secondsOf(client, fence)).toBe(Infinity);
      await written(state, wish(key, null));
      expect(await secondsOf(client, fence)).toBeLessThan(2 * HOUR);

      await written(state, wish(key, value, how));
      expect(await secondsOf(client, `guard/s/${key}`)).toBe(Infinity);
      expect(await secondsOf(client, fence)).toBe(Infinity);
      const token = how.fence?.token ?? 10n;
      expect(await state.write([wish(key, value, under(token - 1n))])).toEqual([{ status: 'fenced', token }]);
    },
  );
});

describe('The fence of an entry', () => {
  it.each(values)(
    '[S2] that expired lasts as long as a %s one that is set anew without a ttl',
    async (_, value) => {
      await using stage = new Stage();
      const { state, client, key: start } = await placed(stage);
      for (const [n, how] of [under(11n), {}].entries()) {
        const key = `${start}${n}`;
        const fence = `guard/f/${key}`;
        await written(state, wish(key, value, { ttl: 60_000, ...under(10n) }));
        // The end of its lease, without the wait for it.
        await client.leaseClient.leaseRevoke({ ID: (await leaseOf(client, `guard/s/${key}`))! });
        expect(await state.read([key])).toEqual([null]);
        expect(await secondsOf(client, fence)).toBeLessThan(3 * HOUR);
        await written(state, wish(key, value, how));
        expect(await secondsOf(client, fence)).toBe(Infinity);
      }
    },
  );

  it('[S2] that is deleted and set anew for half a day stands for half a day and an hour', async () => {
    await using stage = new Stage();
    const { state, client, key, fence } = await placed(stage);
    await written(state, wish(key, SMALL, under(10n)));
    for (const how of [under(11n), {}]) {
      await written(state, wish(key, null));
      await written(state, wish(key, SMALL, { ttl: 12 * HOUR * 1_000, ...how }));
      expect(await secondsOf(client, fence)).toBeGreaterThanOrEqual(13 * HOUR);
    }
  });

  it.each(values)(
    '[S2] stands beside a %s one that keeps its ttl for longer than that, and keeps its own',
    async (_, value) => {
      await using stage = new Stage();
      const { state, client, key, fence } = await placed(stage);
      await written(state, wish(key, value, { ttl: 12 * HOUR * 1_000 }));
      expect(await secondsOf(client, fence)).toBeUndefined();
      await written(state, wish(key, value, under(10n)));
      const lease = await leaseOf(client, fence);
      expect(await secondsOf(client, fence)).toBeGreaterThanOrEqual(13 * HOUR);
      await written(state, wish(key, value));
      await written(state, wish(key, value, under(11n)));
      expect(await leaseOf(client, fence)).toBe(lease);
    },
  );

  it('[S2] outlives one that gets a longer ttl while its first holder asks for the shorter one', async () => {
    await using stage = new Stage();
    const { state, client, key, fence } = await placed(stage);
    await written(state, wish(key, SMALL, { ttl: 60_000 }));
    let asked = 0;
    const longer = wish(key, SMALL, { ttl: 12 * HOUR * 1_000 });
    const slow = etcdState(beforeTimes(client, async () => (asked += 1) > 1 || written(state, longer)));
    stage.ends(() => slow.close());
    await written(slow, wish(key, LARGE, under(10n)));
    expect(asked).toBe(2);
    expect(await secondsOf(client, `guard/s/${key}`)).toBeGreaterThan(11 * HOUR);
    expect(await secondsOf(client, fence)).toBeGreaterThanOrEqual(13 * HOUR);
  });
});
