/**
 * A folder of its own for every case, with a SQLite database that an application would have, and as many independent
 * connections to it as a case asks for.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@guard/core';
import type { MachineTime } from '@guard/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';

/** One database file. */
export interface Place {
  readonly folder: string;
  /** The application's file. */
  readonly file: string;
  /** A data source of its own on the file; not initialized. */
  dataSource(options?: Partial<DataSourceOptions>): DataSource;
  /** Removes the folder. Close what is open first. */
  remove(): void;
}

/** Options of a backend whose time is a test's: timers, wall clock, leases and ttls. */
export function heldBy(clock: Clock): { readonly clock: Clock; readonly machineTime: MachineTime } {
  return { clock, machineTime: { boot: 'this boot', nowMs: () => clock.now().monoMs } };
}

/** A new, empty place. */
export function newPlace(): Place {
  const folder = mkdtempSync(join(tmpdir(), 'guard-typeorm-'));
  const file = join(folder, 'app.sqlite');
  return {
    folder,
    file,
    dataSource: (options) => dataSourceOn(file, options),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A data source on a file; not initialized. */
export function dataSourceOn(file: string, options: Partial<DataSourceOptions> = {}): DataSource {
  return new DataSource({ type: 'better-sqlite3', database: file, ...options } as DataSourceOptions);
}
