/**
 * Which run a wish asks for: a caller's key, the instant it stands for, the window in which it falls, or a random key
 * that nobody shares.
 */
import { type Calendar, nearest } from '../../machine/calendar.js';
import type { NewRun } from '../../machine/run-move.js';
import { isOccurrenceKey, isPartKey, occurrenceKey } from '../../machine/task-record.js';
import { GuardError, invalidArgument } from '../../value/error.js';
import { encodeKey, fullKey, joinParts, MAX_FULL_KEY_BYTES } from '../../value/key.js';
import { pause } from '../flight/pause.js';
import type { RunHost } from './run-host.js';
import type { Wish } from './run-task.js';

/** Task and key of the run, with what is known of it before it begins. */
export async function identify(host: RunHost, wish: Wish): Promise<NewRun> {
  const { random, time, namespace } = host;
  const nowMs = await time.now();
  const { windowMs } = wish.policy;
  if (wish.calendar !== undefined) return occurrence(host, wish, wish.calendar);
  const keyed = wish.key === undefined ? {} : { keyed: true };
  const key = wish.key ?? (windowMs === undefined ? random.id() : windowKey(nowMs, windowMs));
  checkKeyLength(namespace, wish.task, key);
  const input = wish.input === undefined ? {} : { input: wish.input };
  return { task: wish.task, key, id: random.id(), trigger: wish.trigger ?? 'call', ...keyed, ...input };
}

/** By this node's clock, because that is the one the caller's timer follows; an instant that is near is waited for. */
async function occurrence(host: RunHost, wish: Wish, calendar: Calendar): Promise<NewRun> {
  const { clock, random, namespace, stopSignal } = host;
  const instantMs = nearest(calendar, clock.now().wallMs);
  if (instantMs === undefined) {
    throw new GuardError('invalid-argument', `no instant of the schedule of ${wish.task} has come yet`);
  }
  const aheadMs = instantMs - clock.now().wallMs;
  if (aheadMs > 0) await pause(clock, aheadMs, stopSignal);
  const key = occurrenceKey(instantMs);
  checkKeyLength(namespace, wish.task, key);
  const input = wish.input === undefined ? {} : { input: wish.input };
  return { task: wish.task, key, id: random.id(), trigger: 'cron', scheduledForMs: instantMs, ...input };
}

/**
 * A caller's key as text, which must not be the name of something else under its task.
 *
 * @throws GuardError `invalid-argument`: no key; the name of a window, or of what was passed over; or an instant, where
 * the task is known to have a schedule.
 */
export function callersKey({ tasks }: RunHost, task: string, given: unknown): string {
  const key = encodeKey('key', given);
  if (isPartKey(key)) throw invalidArgument('key', key, 'must not be the name that Guard gives a window');
  if (tasks.get(task)?.schedule === undefined || !isOccurrenceKey(key)) return key;
  const why = `must not be an instant, because task ${task} has a schedule: ask for instants by tasks.backfill`;
  throw invalidArgument('key', key, why);
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
