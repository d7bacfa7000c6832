/** The stores that schedules are soaked on, as a value that travels to processes; each scene has one to itself. */
import type { Clock, LockBackend, RunStore } from '@guard/core';
import { ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';

/** One database with nothing else in it. */
export type SoakStore =
  | { readonly type: 'better-sqlite3'; readonly database: string }
  | {
      readonly type: 'postgres';
      readonly url: string;
      readonly schema: string;
      readonly extra: { readonly options: string };
    };

/** The ports on a store, and the end of them. */
export interface OpenStore {
  readonly locks: LockBackend;
  readonly runs: RunStore;
  readonly dataSource: DataSource;
  close(): Promise<void>;
}

/** A file that is not there yet. */
export function onFile(file: string): SoakStore {
  return { type: 'better-sqlite3', database: file };
}

/** A schema that is not there yet. */
export function onSchema(url: string, schema: string): SoakStore {
  return { type: 'postgres', url, schema, extra: { options: `-c search_path=${schema}` } };
}

/** Makes the store and its tables. */
export async function prepare(store: SoakStore): Promise<void> {
  const dataSource = await new DataSource(optionsOf(store)).initialize();
  if (store.type === 'postgres') await dataSource.query(`CREATE SCHEMA "${store.schema}"`);
  await ensureSchema(dataSource);
  await dataSource.destroy();
}

/** Opens a store that was prepared. `clock`: the process's; on SQLite the store has no other one. */
export async function openStore(
  store: SoakStore,
  options: { readonly clock?: Clock } = {},
): Promise<OpenStore> {
  const dataSource = await new DataSource(optionsOf(store)).initialize();
  const [locks, runs] = [typeormLocks(dataSource, options), typeormRuns(dataSource, options)];
  const close = async (): Promise<void> => {
    await locks.close();
    await runs.close();
    await dataSource.destroy();
  };
  return { locks, runs, dataSource, close };
}

function optionsOf(store: SoakStore): DataSourceOptions {
  return store.type === 'postgres' ? { ...store, poolSize: 4 } : { ...store };
}
