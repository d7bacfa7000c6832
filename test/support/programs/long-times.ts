/**
 * A program that names times longer than a timer of the platform can hold: a lease of ninety days that renews itself, and
 * waits of 2^31 milliseconds and without end. Answers what came of them while the test looked.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { opened, type Programmed } from './opener.js';

/** What came of them. */
export interface LongTimes {
  readonly renewals: number;
  /** How many of the waits had ended. */
  readonly ended: number;
}

const LOOKED_AT_MS = 3_000;

const main: WorkerMain<Programmed, LongTimes> = async ({ input }) => {
  const { locks, close } = await opened(input);
  let renewals = 0;
  const renew = locks.renew.bind(locks);
  const counted = Object.assign(locks, {
    renew: (batch: Parameters<typeof renew>[0]) => {
      renewals += 1;
      return renew(batch);
    },
  });
  const guard = createGuard({ locks: counted, namespace: input.namespace });
  const held = await guard.acquire('m', { ttl: 7_776_000_000 });
  const holder = createGuard({ locks, namespace: input.namespace });
  const busy = await holder.acquire('busy', { ttl: '10m' });
  let ended = 0;
  const waits = [2_147_483_648, Infinity].map((wait) =>
    guard.acquire('busy', { wait }).finally(() => (ended += 1)),
  );
  const settled = Promise.allSettled(waits);
  await sleep(LOOKED_AT_MS);
  const seen = { renewals, ended };
  await held.release();
  await guard.close();
  await settled;
  await busy.release();
  await holder.close();
  await close();
  return seen;
};
export default main;
