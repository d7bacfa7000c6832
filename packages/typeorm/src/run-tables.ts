/**
 * Which run stores have their tables in the database of a data source. Kept with the data source itself, under a
 * symbol that all copies of this package share, so that `completeRun` finds the tables of the run that it completes
 * whatever the store was named and prefixed.
 */
import type { DataSource } from 'typeorm';
import type { TableOptions } from './tables.js';

const STORES = Symbol.for('@guard/typeorm/run-stores@2');

/** Remembers a run store by what its tables are called. */
export function rememberRunTables(dataSource: DataSource, storeName: string, options: TableOptions): void {
  const { prefix, schema } = options;
  const called = { ...(prefix === undefined ? {} : { prefix }), ...(schema === undefined ? {} : { schema }) };
  const stores = storesOf(dataSource) ?? new Map<string, TableOptions>();
  Object.defineProperty(dataSource, STORES, { value: stores.set(storeName, called), configurable: true });
}

/** What the tables of a run store are called, if it is in the database of this data source. */
export function runTablesOf(dataSource: DataSource, storeName: string): TableOptions | undefined {
  return storesOf(dataSource)?.get(storeName);
}

function storesOf(dataSource: DataSource): Map<string, TableOptions> | undefined {
  return (dataSource as { [STORES]?: Map<string, TableOptions> })[STORES];
}
