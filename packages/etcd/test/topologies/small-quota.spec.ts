/** A busy half minute on a server with little room, which its operator compacts: nothing is left, and nothing is full. */
import { until } from '@guard/testing';
import { startEtcd } from '@guard/testing/servers';
import { Stage } from '../support/stage.js';

jest.setTimeout(90_000);

const MEBIBYTE = 1_048_576;
const QUOTA = 64 * MEBIBYTE;
/** What the documentation advises, at the pace of this test. */
const COMPACTED = ['--auto-compaction-mode', 'periodic', '--auto-compaction-retention', '5s'];

it('[B29] [S6] Half a minute of locks as fast as they come fits into 64 MiB, leaves no key, and the next one is granted', async () => {
  await using stage = new Stage();
  await using group = await startEtcd({
    onDisk: false,
    args: ['--quota-backend-bytes', String(QUOTA), ...COMPACTED],
  });
  const { guard, client } = stage.process(group.urls);
  const endMs = performance.now() + 30_000;
  let pairs = 0;
  const busy = async (key: string): Promise<void> => {
    while (performance.now() < endMs) {
      await (await guard.acquire(key, { wait: '10s' })).release();
      pairs += 1;
    }
  };
  // A third of the locks are wanted by two at once.
  await Promise.all(Array.from({ length: 64 }, (_, n) => busy(`k${n % 48}`)));
  const { dbSize } = await client.maintenance.status();
  console.log(`${pairs} pairs, ${(Number(dbSize) / MEBIBYTE).toFixed(1)} MiB`);
  expect(Number(dbSize)).toBeLessThan(QUOTA);
  expect((await client.maintenance.alarm({ action: 'Get' })).alarms).toEqual([]);
  expect((await guard.acquire('after')).isHeld()).toBe(true);
  await guard.close();
  await until('no key is left', async () => {
    const { count } = await client.kv.range({
      key: Buffer.from('guard/l/'),
      range_end: Buffer.from('guard/l0'),
      count_only: true,
    });
    return count === '0';
  });
});
