/**
 * The contracts of the ports, against real files. Two timelines: the real one, and one in the test's hand, on which
 * every moment is exact and no case has to wait.
 */
import { ensureSchema, typeormLocks, typeormRuns, typeormState, type TypeormOptions } from '@guard/typeorm';
import type { Clock } from '@guard/core';
import {
  describeLockBackend,
  describeRunStore,
  describeStateStore,
  VirtualClock,
  type TestRunner,
} from '@guard/testing';
import type { DataSource } from 'typeorm';
import { heldBy, newPlace } from './support/place.js';
import { waitingCases } from './support/runners.js';

const oneByOne: TestRunner = { describe, it, skip: it.skip };

type Open<T> = (dataSource: DataSource, options: TypeormOptions) => T;

/** A new file, and as many connections to it as a case asks for. */
async function placeFor<T extends { close(): Promise<void> }>(open: Open<T>, clock?: VirtualClock) {
  const place = newPlace();
  const opened: T[] = [];
  await ensureSchema(place.dataSource());
  const connect = async (own?: Clock): Promise<T> => {
    const timers = own === undefined ? {} : { clock: own };
    const one = open(place.dataSource(), { ...(clock === undefined ? {} : heldBy(clock)), ...timers });
    opened.push(one);
    return one;
  };
  const cleanup = async (): Promise<void> => {
    for (const one of opened) await one.close();
    place.remove();
  };
  return { first: await connect(), place: { connect, cleanup, ...(clock === undefined ? {} : { clock }) } };
}

/** What a backend says of itself. Nothing is opened for it. */
function traitsOf<T extends { readonly traits: object }>(open: Open<T>): T['traits'] {
  const place = newPlace();
  afterAll(() => place.remove());
  return open(place.dataSource(), {}).traits;
}

const times = [
  { time: 'virtual time', clock: () => new VirtualClock(), runner: oneByOne },
  { time: 'real time', clock: () => undefined, runner: waitingCases },
];

for (const { time, clock, runner } of times) {
  const name = `typeorm on SQLite, ${time}`;
  describeLockBackend({
    ...{ runner, name, traits: traitsOf(typeormLocks) },
    create: async () => {
      const { first, place } = await placeFor(typeormLocks, clock());
      return { backend: first, ...place };
    },
  });
  describeStateStore({
    ...{ runner, name, traits: traitsOf(typeormState) },
    create: async () => {
      const { first, place } = await placeFor(typeormState, clock());
      return { store: first, ...place };
    },
  });
  describeRunStore({
    ...{ runner, name, traits: traitsOf(typeormRuns) },
    create: async () => {
      const { first, place } = await placeFor(typeormRuns, clock());
      return { store: first, ...place };
    },
  });
}
