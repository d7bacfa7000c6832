/** Opens `<database>-guard` for a data source: what locks and state have in common. */
import { checkOptions, systemClock, systemRandom, type Clock, type Random } from '@guard/core';
import type { DataSource } from 'typeorm';
import { Connection, type ConnectionOptions } from './connection.js';
import { targetOf } from './dialect.js';
import { Lifetimes } from './lifetime.js';
import { systemMachineTime, type MachineTime } from './machine-time.js';
import { prepareGuardFile } from './sqlite/guard-schema.js';

/** What `typeormLocks`, `typeormState` and `typeormRuns` all may be told. */
export interface TypeormOptions {
  /**
   * Names the place that is written to; nodes that work together must name it alike, and fences compare tokens of one
   * name only. Default: the path of the file.
   */
  readonly name?: string;
  /** For tests: timers, and the wall time that tokens and versions are not below. Default: the system's. */
  readonly clock?: Clock;
  /** For tests: what leases and ttls are counted by. All processes of one file must agree on it. Default: the machine's. */
  readonly machineTime?: MachineTime;
  /** For tests: draws the pauses before a busy file is asked again. Default: the system's. */
  readonly random?: Random;
}

/** Every option of `TypeormOptions`. */
export const TYPEORM_OPTIONS: readonly (keyof TypeormOptions)[] = ['name', 'clock', 'machineTime', 'random'];

/** What a backend in the guard file works with. */
export interface GuardFileParts {
  readonly name: string;
  readonly connection: Connection;
  readonly lifetimes: Lifetimes;
  readonly clock: Clock;
}

/** A connection of its own to the guard file; nothing is opened before the first use. */
export function openGuardFile(
  dataSource: DataSource,
  options: TypeormOptions,
  synchronous: ConnectionOptions['synchronous'],
): GuardFileParts {
  checkOptions('options', options ?? null, TYPEORM_OPTIONS);
  const { guardFile, driver, nativeBinding, key } = targetOf(dataSource);
  const { clock = systemClock, random = systemRandom } = options;
  return {
    name: options.name ?? `sqlite:${guardFile}`,
    connection: new Connection({
      ...{ driver, file: guardFile, create: true, synchronous, nativeBinding, key, clock, random },
      prepare: prepareGuardFile,
    }),
    lifetimes: new Lifetimes(options.machineTime ?? systemMachineTime()),
    clock,
  };
}
