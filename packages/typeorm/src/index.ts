/**
 * The public surface of `@guard/typeorm`, written by hand: nothing is exported by accident.
 */
export { typeormLocks } from './locks.js';
export type { TypeormLocksOptions } from './locks.js';
