/**
 * Who believed to hold which lock, and when: the log that every scenario keeps, and the two laws that it must obey.
 * A belief is not a whole interval from grant to loss: a process that is stopped believes nothing while it sleeps, and
 * what counts is whether it still says "held" when it wakes up. So a pause ends the belief, and the next look that
 * says "held" begins it again.
 */
import { systemClock, type Clock } from '@guard/core';

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

/** The log of one scenario. */
export class HoldLog {
  readonly events: HoldEvent[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** A lock was granted. */
  enter(holder: string, lock: { readonly key: string; readonly token: bigint }): void {
    this.#add({ type: 'enter', key: lock.key, holder, token: lock.token });
  }

  /** Any other line. */
  add(type: Exclude<HoldEvent['type'], 'enter'>, holder: string, key: string): void {
    this.#add({ type, key, holder });
  }

  /** How many grants a holder had, or all holders together. */
  grants(holder?: string): number {
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
 * Moments at which two holders believed in one key at the same time [S1]. Events of one moment count in the order
 * in which they stand in the log; logs of several processes are put together first.
 */
export function findOverlaps(events: readonly HoldEvent[]): string[] {
  const believers = new Map<string, Set<string>>();
  const found: string[] = [];
  for (const { atMs, type, key, holder } of inTime(events)) {
    const holders = believers.get(key) ?? new Set();
    believers.set(key, holders);
    if (type === 'enter' || type === 'held') {
      const others = [...holders].filter((other) => other !== holder);
      if (others.length > 0)
        found.push(`${key}: ${holder} says "${type}" at ${atMs} ms beside ${others.join(', ')}`);
      holders.add(holder);
    } else holders.delete(holder);
  }
  return found;
}

/** Grants whose token is not larger than that of an earlier grant of the key [S2]. */
export function findTokenDisorder(events: readonly HoldEvent[]): string[] {
  const largest = new Map<string, bigint>();
  const found: string[] = [];
  for (const { atMs, type, key, holder, token } of inTime(events)) {
    if (type !== 'enter' || token === undefined) continue;
    const before = largest.get(key);
    if (before !== undefined && token <= before) {
      found.push(`${key}: ${holder} got token ${token} at ${atMs} ms, after ${before}`);
    }
    if (before === undefined || token > before) largest.set(key, token);
  }
  return found;
}

function inTime(events: readonly HoldEvent[]): HoldEvent[] {
  return [...events].sort((a, b) => a.atMs - b.atMs);
}
