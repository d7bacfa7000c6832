/** Opens `<database>-guard` of a SQLite database: what locks and state have in common there. */
import { systemClock, systemRandom, type Clock } from '@guard/core';
import { Connection, type ConnectionOptions } from './connection.js';
import type { SqliteTarget } from './dialect.js';
import { Lifetimes } from './lifetime.js';
import { systemMachineTime } from './machine-time.js';
import type { TypeormOptions } from './options.js';
import { databaseName } from './place-name.js';
import { prepareGuardFile } from './sqlite/guard-schema.js';

/** What a backend in the guard file works with. */
export interface GuardFileParts {
  readonly name: string;
  readonly connection: Connection;
  readonly lifetimes: Lifetimes;
  readonly clock: Clock;
}

/** A connection of its own to the guard file; nothing is opened before the first use. */
export function openGuardFile(
  target: SqliteTarget,
  options: TypeormOptions,
  synchronous: ConnectionOptions['synchronous'],
): GuardFileParts {
  const { guardFile, driver, nativeBinding, key } = target;
  const { clock = systemClock, random = systemRandom } = options;
  return {
    name: options.name ?? databaseName('sqlite', guardFile),
    connection: new Connection({
      ...{ driver, file: guardFile, create: true, synchronous, nativeBinding, key, clock, random },
      prepare: prepareGuardFile,
    }),
    lifetimes: new Lifetimes(options.machineTime ?? systemMachineTime()),
    clock,
  };
}
