/** The contracts of the ports, for a database server. */
import { ensureSchema, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import { describeLockBackend, describeRunStore, describeStateStore } from '@guard/testing';
import { DataSource } from 'typeorm';
import type { Place } from './place-on-server.js';
import { waitingCases as runner } from './runners.js';

/**
 * Describes locks, state and runs on a place of a server that a file of tests starts. `ready`: what each case waits for;
 * a `beforeEach` is not run for cases beside each other.
 */
export function describeContracts(
  type: 'postgres' | 'mariadb',
  name: string,
  newPlace: () => Promise<Place>,
  ready: () => Promise<void> = async () => {},
): void {
  let place: Place;
  beforeAll(async () => {
    place = await newPlace();
    await ensureSchema(await place.dataSource());
  }, 60_000);
  afterAll(() => place.close());

  /** Connections to one place for one case: a data source each, as processes have. */
  async function opening<T extends { close(): Promise<void> }>(open: (dataSource: DataSource) => T) {
    await ready();
    const opened: { readonly one: T; readonly dataSource: DataSource }[] = [];
    const connect = async (): Promise<T> => {
      const dataSource = await place.dataSource({ poolSize: 4 });
      const one = open(dataSource);
      opened.push({ one, dataSource });
      return one;
    };
    const cleanup = async (): Promise<void> => {
      for (const { one, dataSource } of opened) {
        await one.close();
        await dataSource.destroy();
      }
    };
    return { first: await connect(), connect, cleanup };
  }

  const idle = new DataSource({ type });
  describeLockBackend({
    ...{ runner, name, traits: typeormLocks(idle).traits },
    create: async () => {
      const { first, connect, cleanup } = await opening(typeormLocks);
      return { backend: first, connect, cleanup };
    },
  });
  describeStateStore({
    ...{ runner, name, traits: typeormState(idle).traits },
    create: async () => {
      const { first, connect, cleanup } = await opening(typeormState);
      return { store: first, connect, cleanup };
    },
  });
  describeRunStore({
    ...{ runner, name, traits: typeormRuns(idle).traits },
    create: async () => {
      const { first, connect, cleanup } = await opening(typeormRuns);
      return { store: first, connect, cleanup };
    },
  });
}
