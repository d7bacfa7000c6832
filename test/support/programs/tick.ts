/**
 * A service with one single run that it tries again and again, until it is told to end (SIGTERM). Tells when a body
 * begins and ends, by the machine's clock, and what a try met instead.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard, currentRun, GuardError, singleRun, type Duration } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { opened, type Programmed } from './opener.js';

export interface TickInput extends Programmed {
  readonly everyMs: number;
  readonly bodyMs: number;
  readonly grace: Duration;
  readonly ttl: Duration;
}

export interface Tick {
  readonly what: 'begin' | 'end' | 'cut' | 'error';
  readonly atMs: number;
  readonly code?: string;
}

const main: WorkerMain<TickInput> = async ({ input, tell }) => {
  const { everyMs, bodyMs, grace, ttl } = input;
  const { locks, runs, close } = await opened(input);
  const guard = createGuard({ locks, runs, grace, namespace: input.namespace });
  const say = (what: Tick['what'], code?: string): Promise<void> =>
    tell({ what, atMs: Number(process.hrtime.bigint()) / 1e6, ...(code === undefined ? {} : { code }) });
  const tick = singleRun({ name: 'tick', guard, ttl }, async () => {
    await say('begin');
    const { signal } = currentRun()!;
    await sleep(bodyMs, undefined, { signal }).then(
      () => say('end'),
      () => say('cut'),
    );
  });
  let closing: Promise<void> | undefined;
  process.once('SIGTERM', () => {
    closing = guard.close();
  });
  const tries = new Set<Promise<void>>();
  while (closing === undefined) {
    const one = tick().catch((error: unknown) => say('error', GuardError.is(error) ? error.code : 'other'));
    tries.add(one);
    void one.then(() => tries.delete(one));
    await sleep(everyMs);
  }
  await closing;
  await Promise.all(tries);
  await close();
};
export default main;
