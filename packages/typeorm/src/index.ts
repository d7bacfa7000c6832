/**
 * The public surface of `@guard/typeorm`, written by hand: nothing is exported by accident.
 */
export { typeormLocks } from './locks.js';
export { typeormState } from './state.js';
export { typeormRuns } from './runs.js';
export type { TypeormOptions, TypeormTableOptions } from './options.js';
export type { MachineTime } from './machine-time.js';
export type { TypeormRunsOptions } from './runs.js';

// inside a transaction of the application
export { assertFence, completeRun, createRun } from './transaction.js';
export { compareAndSave } from './compare-and-save.js';

// tables in the application's database
export { ensureSchema, guardMigrations } from './migrations.js';
export type { MigrationClass } from './migrations.js';
export { guardEntities } from './entities.js';
export type {
  EntityOptions,
  FenceRow,
  GuardEntities,
  NodeRow,
  RunEventRow,
  RunRow,
  TaskRow,
} from './entities.js';
export type { TableOptions } from './tables.js';
