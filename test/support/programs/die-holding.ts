/** A program that takes a lock and dies of an error that nobody catches. */
import { createGuard, type Duration } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { opened, type Programmed } from './opener.js';

const main: WorkerMain<Programmed & { ttl: Duration }> = async ({ input, tell }) => {
  const { locks } = await opened(input);
  const guard = createGuard({ locks, namespace: input.namespace });
  await guard.acquire('dd', { ttl: input.ttl });
  await tell('held');
  setImmediate(() => {
    throw new Error('nobody catches this');
  });
  await new Promise(() => undefined);
};
export default main;
