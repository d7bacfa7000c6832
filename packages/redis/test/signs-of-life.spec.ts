/** The connection for messages asks whether its other end is there: soon while somebody waits, seldom while nobody does. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Claim } from '@guard/core';
import { until } from '@guard/testing';
import { Messages, type Line } from '../src/channel.js';
import { redisLocks, type RedisConnection } from '../src/index.js';

const nothing = (): void => undefined;
const done = async (): Promise<void> => undefined;

/** A line whose server answers `ping`, or hangs. */
function lineOf(ping: () => Promise<unknown>): { readonly line: Line; readonly pings: () => number } {
  let asked = 0;
  const line: Line = {
    subscribe: done,
    unsubscribe: done,
    close: done,
    ping: () => {
      asked += 1;
      return ping();
    },
  };
  return { line, pings: () => asked };
}

it('[L2] gives up a connection whose server hangs within three seconds while somebody waits', async () => {
  const { line } = lineOf(() => new Promise(nothing));
  let opened = 0;
  const messages = new Messages(async () => {
    opened += 1;
    return opened === 1 ? line : lineOf(done).line;
  });
  const states: boolean[] = [];
  const startedMs = performance.now();
  const channel = await messages.subscribe(
    'm',
    nothing,
    (open) => states.push(open),
    () => true,
  );
  await until('the next one is open', () => states.includes(true), 10_000);
  expect(states).toEqual([false, true]);
  expect(performance.now() - startedMs).toBeLessThan(4_500);
  await channel.close();
});

it('asks nothing while nobody waits, nor while messages come in', async () => {
  let waits = false;
  const tells: ((channel: string, message: string) => void)[] = [];
  const { line, pings } = lineOf(done);
  const messages = new Messages(async ({ onMessage }) => {
    tells.push(onMessage);
    return line;
  });
  const channel = await messages.subscribe('m', nothing, nothing, () => waits);
  await sleep(1_600);
  expect(pings()).toBe(0);
  waits = true;
  for (let n = 0; n < 10; n += 1) {
    tells[0]!('m', 'news');
    await sleep(150);
  }
  expect(pings()).toBe(0);
  await until('it is asked', () => pings() > 0);
  await channel.close();
});

it('[L2] a claim in a queue waits for messages until its ticket ends, or it asks again', async () => {
  const never = (): Promise<never> => new Promise(nothing);
  let isAwaited: (() => boolean) | undefined;
  let answer: unknown = ['1700000000000000000'];
  const connection: RedisConnection = {
    ...{ place: '', scope: '', cluster: false, scan: never },
    run: async () => ({ value: answer, resent: false, acks: 0 }),
    subscribe: async (_channel, _onMessage, _onState, given) => {
      isAwaited = given;
      return { close: done };
    },
  };
  const claim: Claim = {
    ...{ key: 'k', id: 'c', session: 's', ttlMs: 1_000, wait: true, ticketTtlMs: 400 },
    holder: { label: 'test' },
  };
  const locks = redisLocks(connection);
  await locks.subscribe!('s', nothing);
  await locks.acquire([claim]);
  expect(isAwaited!()).toBe(false);
  answer = [['q', 0, '1700000000000000000', 1]];
  await locks.acquire([claim]);
  expect(isAwaited!()).toBe(true);
  await until('its ticket has ended', () => !isAwaited!());
});
