/** Watches of state over streams that die without a word, and what they cost while all is well. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy, until, type TcpProxy } from '@guard/testing';
import { startEtcd, type EtcdGroup } from '@guard/testing/servers';
import { countsOf } from './support/counts.js';
import { server, stopServer } from './support/place.js';
import { Stage, type Process } from './support/stage.js';

afterAll(stopServer);

/** Six seconds until the silence is noticed, three for a try on a member that hangs, four for a listing that meets it. */
const WITHIN_MS = 25_000;

/** Watches with several prefixes, and a way to wait until each has heard of a value. */
async function watching(stage: Stage, { guard }: Process) {
  const prefixes = ['a/', 'b/', 'c/', 'd/', 'e/'];
  const last = new Map<string, number>();
  for (const prefix of prefixes) {
    const watch = await guard.state.watch<number>(prefix, ({ entry }) => void last.set(prefix, entry!.value));
    stage.ends(() => watch.close());
  }
  return {
    write: async (by: Process, value: number): Promise<void> => {
      for (const prefix of prefixes) await by.guard.state.set(`${prefix}k`, value);
    },
    heard: (value: number): Promise<void> =>
      until(
        `all watches to hear of ${value}`,
        () => prefixes.every((prefix) => last.get(prefix) === value),
        WITHIN_MS,
      ),
  };
}

it('[L3] Watches hear of everything within a bounded time, whichever of two wires is cut without a word', async () => {
  await using stage = new Stage();
  const { urls, nodes } = await server();
  const target = { host: nodes[0]!.host, port: nodes[0]!.port };
  await using one = await startTcpProxy({ target });
  await using other = await startTcpProxy({ target });
  const urlOf = ({ host, port }: TcpProxy): string => `http://${host}:${port}`;
  const near = stage.process(urls);
  const watched = await watching(stage, stage.process([urlOf(one), urlOf(other)]));
  let value = 0;
  // The stream is on one of both, and moves to the other.
  for (const proxy of [one, other]) {
    proxy.cut();
    await watched.write(near, (value += 1));
    await watched.heard(value);
    proxy.heal();
  }
});

describe('Three nodes', () => {
  let group: EtcdGroup;
  beforeAll(async () => {
    group = await startEtcd({ nodes: 3, onDisk: false });
  });
  afterAll(() => group.stop());

  it('[L3] tell watches everything within a bounded time, whichever member hangs', async () => {
    await using stage = new Stage();
    const leader = await group.leader();
    const followers = group.nodes.filter((node) => node !== leader);
    const near = stage.process([leader.url]);
    const watched = await watching(stage, stage.process(followers.map(({ url }) => url)));
    let value = 0;
    for (const follower of followers) {
      await follower.pause();
      try {
        await watched.write(near, (value += 1));
        await watched.heard(value);
      } finally {
        await follower.resume();
      }
    }
  });
});

it('[C3] Many watches share one stream, and one sign of life every three seconds', async () => {
  await using stage = new Stage();
  const [url] = (await server()).urls;
  const { guard } = stage.process([url!]);
  const before = await countsOf(url!);
  const heard: string[] = [];
  for (let n = 0; n < 20; n += 1) {
    const watch = await guard.state.watch(`p${n}/`, ({ key }) => void heard.push(key));
    stage.ends(() => watch.close());
  }
  await sleep(10_000);
  const after = await countsOf(url!);
  expect(after.Watch - before.Watch).toBe(1);
  // Twenty that open a watch; the others ask for a sign of life, three or four times in ten seconds.
  expect(after.WatchAsked - before.WatchAsked).toBeGreaterThanOrEqual(22);
  expect(after.WatchAsked - before.WatchAsked).toBeLessThanOrEqual(24);
  for (let n = 0; n < 20; n += 1) await guard.state.set(`p${n}/k`, n);
  await until('all news', () => heard.length === 20);
});
