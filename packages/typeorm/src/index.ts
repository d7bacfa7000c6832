/**
 * The public surface of `@guard/typeorm`, written by hand: nothing is exported by accident.
 */
export { typeormLocks } from './locks.js';
export { typeormState } from './state.js';
export type { TypeormOptions } from './guard-file.js';
