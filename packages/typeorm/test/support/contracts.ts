/** The contracts of the ports, for a database server. */
import { ensureSchema, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import type { LockBackend } from '@guard/core';
import { describeLockBackend, describeRunStore, describeStateStore, type TestRunner } from '@guard/testing';
import { DataSource } from 'typeorm';
import type { Place } from './place-on-server.js';
import { waitingCases } from './runners.js';

/** What differs between places. */
interface ContractOptions {
  /** What each case waits for; a `beforeEach` is not run for cases beside each other. */
  readonly ready?: () => Promise<void>;
  /** How cases are played. */
  readonly runner?: TestRunner;
  /** Whether messages reach waiters, which a pooler may keep back. Default: what the backend says. */
  readonly push?: boolean;
}

/** Describes locks, state and runs on a place of a server that a file of tests starts. */
export function describeContracts(
  type: 'postgres' | 'mariadb',
  name: string,
  newPlace: () => Promise<Place>,
  { ready = async () => {}, runner = waitingCases, push }: ContractOptions = {},
): void {
  let place: Place;
  beforeAll(async () => {
    place = await newPlace();
    await ensureSchema(await place.dataSource());
  }, 60_000);
  afterAll(() => place.close());

  /** Data sources that no case uses at the moment: most of the work of a short case would be to make its own. */
  const spare: DataSource[] = [];

  /** Connections to one place for one case: a data source each, as processes have. */
  async function opening<T extends { close(): Promise<void> }>(open: (dataSource: DataSource) => T) {
    await ready();
    const used: DataSource[] = [];
    const opened: T[] = [];
    const connect = async (): Promise<T> => {
      const dataSource = spare.pop() ?? (await place.dataSource({ poolSize: 4 }));
      used.push(dataSource);
      const one = open(dataSource);
      opened.push(one);
      return one;
    };
    const cleanup = async (): Promise<void> => {
      for (const one of opened) await one.close();
      spare.push(...used);
    };
    return { first: await connect(), connect, cleanup };
  }

  const idle = new DataSource({ type });
  const locksOn = (dataSource: DataSource): LockBackend => pushing(typeormLocks(dataSource), push);
  describeLockBackend({
    ...{ runner, name, traits: locksOn(idle).traits },
    create: async () => {
      const { first, connect, cleanup } = await opening(locksOn);
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

/** The backend, with what is true of its messages in this place. */
function pushing(backend: LockBackend, push = backend.traits.push): LockBackend {
  return {
    ...{ name: backend.name, traits: { ...backend.traits, push } },
    acquire: (claims) => backend.acquire(claims),
    renew: (renewals) => backend.renew(renewals),
    release: (releases) => backend.release(releases),
    inspect: (query) => backend.inspect(query),
    ...(backend.subscribe && { subscribe: (session, listener) => backend.subscribe!(session, listener) }),
    close: () => backend.close(),
  };
}
