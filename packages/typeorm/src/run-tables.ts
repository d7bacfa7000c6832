/**
 * Where a run store has its tables, and whether a transaction of the application can write to them. The place is kept
 * with the store itself, under a symbol that all copies of this package share, so it is that of the very store, whatever
 * others were made after it, and ends with it.
 */
import type { RunStore } from '@guard/core';
import type { DataSource } from 'typeorm';
import { targetOf, type Target } from './dialect.js';
import type { TypeormTableOptions } from './options.js';
import type { TableOptions } from './tables.js';

/** Where a run store has its tables. */
interface RunPlace {
  readonly dataSource: DataSource;
  readonly database: string;
  /** The name that the application gave the database. */
  readonly name: string | undefined;
  readonly prefix: string | undefined;
  /** `undefined`: that of the search path. */
  readonly schema: string | undefined;
}

const PLACE = Symbol.for('@guard/typeorm/run-place@1');
const NAMES = Symbol.for('@guard/typeorm/database-names@1');
/** The most names that are kept for one data source. An application gives it one; the newest stay. */
const MAX_NAMES = 100;

/** Remembers where a run store has its tables. */
export function rememberRunTables(
  store: RunStore,
  dataSource: DataSource,
  options: TypeormTableOptions,
): void {
  const target = targetOf(dataSource);
  const { name, prefix, schema = schemaOf(target) } = options;
  const place: RunPlace = { dataSource, database: databaseOf(target), name, prefix, schema };
  Object.defineProperty(store, PLACE, { value: place });
  if (name !== undefined) rememberName(dataSource, name);
}

/**
 * What the tables of a run store are called in statements of a transaction of this data source; `undefined`: it does not
 * write to where they are. Another data source does where it has the same database, by its address or by a name that the
 * application gave both, and the same schema.
 */
export function runTablesFor(dataSource: DataSource, store: RunStore): TableOptions | undefined {
  const place = (store as { readonly [PLACE]?: RunPlace })[PLACE];
  if (place === undefined) return undefined;
  const { prefix } = place;
  if (place.dataSource === dataSource) return named(prefix, place.schema);
  const target = targetOf(dataSource);
  const isSameDatabase =
    databaseOf(target) === place.database ||
    (place.name !== undefined && namesOf(dataSource)?.has(place.name) === true);
  if (!isSameDatabase) return undefined;
  if (target.type !== 'postgres') return named(prefix, undefined);
  const schema = place.schema ?? target.schema;
  const theirs = place.schema ?? searchedBy(place.dataSource);
  const ours = target.schema ?? place.schema ?? searchedBy(dataSource);
  return ours === theirs ? named(prefix, schema) : undefined;
}

function named(prefix: string | undefined, schema: string | undefined): TableOptions {
  return { ...(prefix === undefined ? {} : { prefix }), ...(schema === undefined ? {} : { schema }) };
}

function databaseOf(target: Target): string {
  return target.type === 'sqlite' ? target.file : target.place;
}

function schemaOf(target: Target): string | undefined {
  return target.type === 'postgres' ? target.schema : undefined;
}

/** The schema that TypeORM found at the head of the search path when it connected. */
function searchedBy({ driver }: DataSource): string | undefined {
  return (driver as { readonly searchSchema?: string }).searchSchema;
}

function rememberName(dataSource: DataSource, name: string): void {
  const names = namesOf(dataSource) ?? new Set<string>();
  names.delete(name);
  names.add(name);
  for (const oldest of names) if (names.size > MAX_NAMES) names.delete(oldest);
  Object.defineProperty(dataSource, NAMES, { value: names, configurable: true });
}

function namesOf(dataSource: DataSource): Set<string> | undefined {
  return (dataSource as { readonly [NAMES]?: Set<string> })[NAMES];
}
