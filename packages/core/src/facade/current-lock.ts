/** The ambient lock. */
import type { Lock } from '../api/lock.js';
import { currentLock as innermost } from '../runtime/context.js';

/**
 * The innermost lock that the current code runs under and that is still held: that of the nearest `withLock`,
 * `@Locked` or run. `undefined` outside, and after it was lost. Handles from `acquire` are not ambient.
 */
export function currentLock(): Lock | undefined {
  return innermost();
}
