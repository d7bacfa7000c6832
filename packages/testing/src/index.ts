/**
 * The public surface of `@guard/testing`, written by hand: nothing is exported by accident.
 */
// time and chance in a test's hand
export { VirtualClock } from './clock/virtual-clock.js';
export type { PendingTimers, VirtualClockOptions } from './clock/virtual-clock.js';
export { SeededRandom } from './clock/seeded-random.js';
