/** The contracts of the ports, against a real Postgres. */
import { ensureSchema, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import { describeLockBackend, describeRunStore, describeStateStore, type TestRunner } from '@guard/testing';
import { DataSource } from 'typeorm';
import { newSchema, onPostgres, type PostgresPlace } from '../support/postgres.js';

const runner: TestRunner = { describe, it, skip: it.skip };
const postgres = onPostgres();
let place: PostgresPlace;

beforeAll(async () => {
  place = await newSchema(postgres.server.url);
  await ensureSchema(await place.dataSource());
}, 60_000);
afterAll(() => place.close());

/** Connections to one place for one case: a data source each, as processes have. */
async function opening<T extends { close(): Promise<void> }>(open: (dataSource: DataSource) => T) {
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

const idle = new DataSource({ type: 'postgres' });
const name = 'typeorm on Postgres';

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
