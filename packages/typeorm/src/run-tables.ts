/**
 * Which run stores have their tables in the database of a data source. Kept with the data source itself, under a
 * symbol that all copies of this package share, so that `completeRun` finds the tables of the run that it completes
 * whatever the store was named and prefixed.
 */
import type { DataSource } from 'typeorm';
import type { TableNames } from './tables.js';

const STORES = Symbol.for('@guard/typeorm/run-stores@1');

/** Remembers a run store. */
export function rememberRunTables(dataSource: DataSource, storeName: string, tables: TableNames): void {
  const stores = storesOf(dataSource) ?? new Map<string, TableNames>();
  Object.defineProperty(dataSource, STORES, { value: stores.set(storeName, tables), configurable: true });
}

/** The tables of a run store, if it is in the database of this data source. */
export function runTablesOf(dataSource: DataSource, storeName: string): TableNames | undefined {
  return storesOf(dataSource)?.get(storeName);
}

function storesOf(dataSource: DataSource): Map<string, TableNames> | undefined {
  return (dataSource as { [STORES]?: Map<string, TableNames> })[STORES];
}
