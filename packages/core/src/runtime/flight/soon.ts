/**
 * "As soon as everything that is ready has run": behind all reactions to promises that are due, and before any I/O. An
 * answer to thirty claims wakes thirty callers one after the other, each some reactions deep; whoever looks at the first
 * wish of theirs sees one, and whoever waits this long sees thirty.
 */

// Taken once: what fakes the timers of a test does not stop batches.
const nextTick = process.nextTick.bind(process);

/** Runs it once everything that is ready has run. */
export function soon(run: () => void): void {
  nextTick(run);
}
