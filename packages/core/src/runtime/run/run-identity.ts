/** Which run a wish asks for: a caller's key, the window in which it falls, or a random key that nobody shares. */
import type { NewRun } from '../../machine/run-move.js';
import { GuardError } from '../../value/error.js';
import { fullKey, joinParts, MAX_FULL_KEY_BYTES } from '../../value/key.js';
import type { RunHost } from './run-host.js';
import type { Wish } from './run-task.js';

/** Task and key of the run, with what is known of it before it begins. */
export async function identify(host: RunHost, wish: Wish): Promise<NewRun> {
  const { random, time, namespace } = host;
  const nowMs = await time.now();
  const { windowMs } = wish.policy;
  const keyed = wish.key === undefined ? {} : { keyed: true };
  const key = wish.key ?? (windowMs === undefined ? random.id() : windowKey(nowMs, windowMs));
  checkKeyLength(namespace, wish.task, key);
  const input = wish.input === undefined ? {} : { input: wish.input };
  return { task: wish.task, key, id: random.id(), trigger: 'call', ...keyed, ...input };
}

/**
 * Refuses task and key that together would not fit into a full key.
 *
 * @throws GuardError `invalid-argument`.
 */
export function checkKeyLength(namespace: string, task: string, key: string): void {
  const bytes = Buffer.byteLength(fullKey(namespace, 'task', joinParts([task, key])));
  if (bytes <= MAX_FULL_KEY_BYTES) return;
  const message = `namespace, task and key together must be at most ${MAX_FULL_KEY_BYTES} bytes, got ${bytes}`;
  throw new GuardError('invalid-argument', message, { key });
}

/** The window in which an instant lies, counted from the epoch: the same text on every node. */
function windowKey(nowMs: number, windowMs: number): string {
  return `${new Date(Math.floor(nowMs / windowMs) * windowMs).toISOString()}/${windowMs}ms`;
}
