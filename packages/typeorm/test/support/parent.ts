/** The child's end of `Child`. */
import { DataSource, type DataSourceOptions } from 'typeorm';

/** What the test handed in. */
export function input<T>(): T {
  return JSON.parse(process.env['GUARD_TEST_INPUT']!) as T;
}

/** Tells the test something; resolves when it is on its way. */
export function tell(message: unknown): Promise<void> {
  return new Promise((resolve, reject) =>
    process.send!(message, undefined, undefined, (error) => (error === null ? resolve() : reject(error))),
  );
}

/** The test's next message. */
export function hear<T = unknown>(): Promise<T> {
  return new Promise((resolve) => process.once('message', (message) => resolve(message as T)));
}

/** A data source on a file. */
export function dataSourceOn(file: string, options: Partial<DataSourceOptions> = {}): DataSource {
  return new DataSource({ type: 'better-sqlite3', database: file, ...options } as DataSourceOptions);
}

/** Lets real time pass. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
