/**
 * The contracts of the ports, against real files. Two timelines: the real one, and one in the test's hand, on which
 * every moment is exact and no case has to wait.
 */
import { ensureSchema, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import {
  describeLockBackend,
  describeRunStore,
  describeStateStore,
  VirtualClock,
  type TestRunner,
} from '@guard/testing';
import type { DataSource } from 'typeorm';
import { newPlace } from './support/place.js';

const runner: TestRunner = { describe, it, skip: it.skip };

type Open<T> = (dataSource: DataSource, options: { readonly clock?: VirtualClock }) => T;

/** Two connections of their own to one new file. */
function twice<T extends { close(): Promise<void> }>(open: Open<T>, clock?: VirtualClock) {
  const place = newPlace();
  const options = clock === undefined ? {} : { clock };
  const [first, second] = [open(place.dataSource(), options), open(place.dataSource(), options)];
  const cleanup = async (): Promise<void> => {
    await Promise.all([first.close(), second.close()]);
    place.remove();
  };
  return {
    first,
    dataSource: place.dataSource(),
    place: { connect: async () => second, ...options, cleanup },
  };
}

/** What a backend says of itself. Nothing is opened for it. */
function traitsOf<T extends { readonly traits: object }>(open: Open<T>): T['traits'] {
  const place = newPlace();
  afterAll(() => place.remove());
  return open(place.dataSource(), {}).traits;
}

const times = [
  { time: 'virtual time', clock: () => new VirtualClock() },
  { time: 'real time', clock: () => undefined },
];

for (const { time, clock } of times) {
  const name = `typeorm on SQLite, ${time}`;
  describeLockBackend({
    ...{ runner, name, traits: traitsOf(typeormLocks) },
    create: async () => {
      const { first, place } = twice(typeormLocks, clock());
      return { backend: first, ...place };
    },
  });
  describeStateStore({
    ...{ runner, name, traits: traitsOf(typeormState) },
    create: async () => {
      const { first, place } = twice(typeormState, clock());
      return { store: first, ...place };
    },
  });
  describeRunStore({
    ...{ runner, name, traits: traitsOf(typeormRuns) },
    create: async () => {
      const { first, dataSource, place } = twice(typeormRuns, clock());
      await ensureSchema(dataSource);
      return { store: first, ...place };
    },
  });
}
