/**
 * Who believed to hold which lock, and when: the log that every scenario keeps, and the two laws that it must obey.
 * A belief is not a whole interval from grant to loss: a process that is stopped believes nothing while it sleeps, and
 * what counts is whether it still says "held" when it wakes up. So a pause ends the belief, and the next look that
 * says "held" begins it again.
 */
import { invalidArgument, systemClock, type Clock } from '@guard/core';
import { checkClock, requireNumber, requireOneOf, requireText } from '../argument.js';

/** One line of the log. */
export interface HoldEvent {
  /** Monotonic time that all processes of the scenario share. */
  readonly atMs: number;
  /**
   * `enter`: the lock was granted · `held`: the holder looked, and still believes · `paused`: the holder is stopped ·
   * `exit`: it begins to release · `lost`: it was told that the lock is lost.
   */
  readonly type: 'enter' | 'held' | 'paused' | 'exit' | 'lost';
  readonly key: string;
  /** Names one grant's holder: a process, or a loop inside one. */
  readonly holder: string;
  /** The fencing token of the grant, on `enter`. */
  readonly token?: bigint;
}

/** What a holder says beside that it was granted the lock. */
export const LATER: readonly HoldEvent['type'][] = ['held', 'paused', 'exit', 'lost'];

/** The log of one scenario. */
export class HoldLog {
  readonly events: HoldEvent[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    checkClock('clock', clock);
    this.#clock = clock;
  }

  /** A lock was granted. */
  enter(holder: string, lock: { readonly key: string; readonly token: bigint }): void {
    requireGrant(holder, lock);
    this.#add({ type: 'enter', key: lock.key, holder, token: lock.token });
  }

  /** Any other line. */
  add(type: Exclude<HoldEvent['type'], 'enter'>, holder: string, key: string): void {
    requireLine(type, holder, key);
    this.#add({ type, key, holder });
  }

  /** How many grants a holder had, or all holders together. */
  grants(holder?: string): number {
    if (holder !== undefined) requireText('holder', holder);
    return this.events.filter((event) => event.type === 'enter' && (holder ?? event.holder) === event.holder)
      .length;
  }

  /** What is wrong with the log, in sentences: overlaps [S1] and tokens that do not grow [S2]. */
  problems(): string[] {
    return [...findOverlaps(this.events), ...findTokenDisorder(this.events)];
  }

  #add(event: Omit<HoldEvent, 'atMs'>): void {
    this.events.push({ ...event, atMs: this.#clock.now().monoMs });
  }
}

/**
 * Moments at which two holders believed in one key at the same time [S1]: two names, one name that was granted the key
 * a second time, or one that says "held" after it began to release, or was told that the lock is lost. Events of one
 * moment count in the order in which they stand in the log; logs of several processes are put together first.
 */
export function findOverlaps(events: readonly HoldEvent[]): string[] {
  const believers = new Map<string, Set<string>>();
  /** By which word each holder's grant of a key ended. */
  const ends = new Map<string, Map<string, string>>();
  const found: string[] = [];
  for (const { atMs, type, key, holder } of inTime(events)) {
    const holders = of(believers, key, () => new Set<string>());
    const ended = of(ends, key, () => new Map<string, string>());
    if (type === 'enter' || type === 'held') {
      const says = `${key}: ${holder} says "${type}" at ${atMs} ms`;
      const others = [...holders].filter((other) => other !== holder);
      if (others.length > 0) found.push(`${says} beside ${others.join(', ')}`);
      else if (type === 'enter' && holders.has(holder)) found.push(`${says} while it holds already`);
      else if (type === 'held' && ended.has(holder)) {
        found.push(`${says} after it said "${ended.get(holder)}"`);
      }
      holders.add(holder);
      if (type === 'enter') ended.delete(holder);
    } else {
      holders.delete(holder);
      if (type !== 'paused') ended.set(holder, type);
    }
  }
  return found;
}

/** Grants whose token is not larger than that of an earlier grant of the key, and grants without a token [S2]. */
export function findTokenDisorder(events: readonly HoldEvent[]): string[] {
  const largest = new Map<string, bigint>();
  const found: string[] = [];
  for (const { atMs, type, key, holder, token } of inTime(events)) {
    if (type !== 'enter') continue;
    if (token === undefined) {
      found.push(`${key}: ${holder} got no token at ${atMs} ms`);
      continue;
    }
    const before = largest.get(key);
    if (before !== undefined && token <= before) {
      found.push(`${key}: ${holder} got token ${token} at ${atMs} ms, after ${before}`);
    }
    if (before === undefined || token > before) largest.set(key, token);
  }
  return found;
}

/** Refuses a grant that no law could be looked at for. */
export function requireGrant(holder: unknown, lock: unknown): void {
  const { key, token } = (lock ?? {}) as { readonly key?: unknown; readonly token?: unknown };
  requireText('holder', holder);
  requireText('lock.key', key);
  if (typeof token !== 'bigint') throw invalidArgument('lock.token', token, 'must be a bigint');
}

/** Refuses any other line that would end a belief, or begin one, that nobody spoke of. */
export function requireLine(type: unknown, holder: unknown, key: unknown): void {
  requireOneOf('type', type, LATER);
  requireText('holder', holder);
  requireText('key', key);
}

/** What a map has for a key; made where it has nothing. */
function of<V>(map: Map<string, V>, key: string, make: () => V): V {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}

function inTime(events: readonly HoldEvent[]): HoldEvent[] {
  const given: unknown = events;
  if (!Array.isArray(given)) throw invalidArgument('events', given, 'must be an array');
  for (const [index, event] of events.entries()) {
    const argument = `events[${index}]`;
    const { atMs, type, key, holder, token } = (event ?? {}) as Partial<HoldEvent>;
    requireNumber(`${argument}.atMs`, atMs);
    requireOneOf(`${argument}.type`, type, ['enter', ...LATER]);
    requireText(`${argument}.key`, key);
    requireText(`${argument}.holder`, holder);
    // As texts, 9 would be more than 10.
    if (token !== undefined && typeof token !== 'bigint')
      throw invalidArgument(`${argument}.token`, token, 'must be a bigint');
  }
  return [...events].sort((a, b) => a.atMs - b.atMs);
}
