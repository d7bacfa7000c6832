/** Waiting on the guard's clock, with an end. */
import type { Clock } from '../../port/clock.js';

/** Resolves after `delayMs`, or as soon as `signal` aborts; keeps the process alive until then (L5). */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.setTimer(done, delayMs);
    if (signal?.aborted) done();
    else signal?.addEventListener('abort', done);
  });
}

/** `promise`, or a rejection with `late()` after `limitMs`. The promise itself goes on. */
export function within<T>(
  clock: Clock,
  limitMs: number,
  promise: PromiseLike<T>,
  late: () => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(() => reject(late()), limitMs);
    promise.then(
      (value) => (timer.cancel(), resolve(value)),
      (error: Error) => (timer.cancel(), reject(error)),
    );
  });
}

/** Waits until `promise` has resolved, but no longer than `limitMs`; leaves no timer behind. */
export async function atMost(clock: Clock, limitMs: number, promise: PromiseLike<unknown>): Promise<void> {
  const late = new Error('late');
  await within(clock, limitMs, promise, () => late).catch((error: unknown) => {
    if (error !== late) throw error;
  });
}
