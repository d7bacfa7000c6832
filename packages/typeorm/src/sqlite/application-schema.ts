/** Makes Guard's tables in the application's SQLite file, through a connection of its own. */
import { GuardError, systemClock, systemRandom, type Clock } from '@guard/core';
import { Connection } from '../connection.js';
import type { SqliteTarget } from '../dialect.js';
import { isBusy } from '../driver.js';
import { createTables } from '../statements/sqlite-tables.js';
import type { TableNames } from '../tables.js';

/** The longest time for which others that use the file are waited for. */
const PATIENCE_MS = 30_000;

/**
 * Makes the tables that are not there yet.
 *
 * @throws GuardError `unavailable`: the file cannot be written.
 */
export async function createInFile(
  target: SqliteTarget,
  tables: TableNames,
  clock: Clock = systemClock,
): Promise<void> {
  const { file, driver, nativeBinding, key } = target;
  const connection = new Connection({
    ...{ driver, file, create: true, synchronous: 'FULL', nativeBinding, key },
    ...{ clock, random: systemRandom },
  });
  try {
    await connection.write(PATIENCE_MS, () =>
      connection.immediate(() => {
        for (const statement of createTables(tables)) connection.run(statement);
      }),
    );
  } catch (cause) {
    const failed = `the tables of @guard/typeorm cannot be made in ${file}`;
    const reason = isBusy(cause)
      ? ': another connection keeps it locked, in a transaction, or for good by locking_mode = EXCLUSIVE'
      : '';
    throw new GuardError('unavailable', failed + reason, { cause });
  } finally {
    connection.close();
  }
}
