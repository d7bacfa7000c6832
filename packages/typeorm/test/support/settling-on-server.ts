/** Starts the process that settles once on a database server. */
import type { WorkerProcess } from '@guard/testing';
import type { DataSource } from 'typeorm';
import { startChild } from './child.js';

/** With the data source's own options, as far as they travel. */
export function settlingOnServer(_place: unknown, dataSource: DataSource, more: object): WorkerProcess {
  const { type, url, schema, extra } = dataSource.options as unknown as Record<string, unknown>;
  return startChild('settle-on-server.ts', { options: { type, url, schema, extra }, ...more });
}
