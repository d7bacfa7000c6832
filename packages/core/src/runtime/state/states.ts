/**
 * The state of one guard: reads and writes in batches, repeated within a bounded time. A write carries an id that the
 * store keeps, so a repetition of a write that was applied is recognised; where that is not certain any more, the
 * answer is "in doubt" and never "somebody was faster" (S4).
 */
import { backoffMs } from '../../machine/backoff.js';
import type { Clock, Policy, Random } from '../../port/clock.js';
import type { Subscription } from '../../port/lock-backend.js';
import type {
  StateChange,
  StatePage,
  StateStore,
  StateWrite,
  StoredEntry,
  WriteAnswer,
} from '../../port/state-store.js';
import { GuardError } from '../../value/error.js';
import { Coalescer } from '../flight/coalescer.js';
import type { Landing } from '../flight/operation.js';
import type { Events } from '../events.js';
import { closedError } from '../lock/lock-errors.js';
import { Outage, isPermanent, unavailable } from '../flight/outage.js';
import { atMost, pause, within } from '../flight/pause.js';
import { retrying, type RetryHost } from '../flight/retry.js';
import { Scheduler } from '../flight/scheduler.js';
import { OpenWatches } from './open-watches.js';

/** How long a call goes on trying. */
const BUDGET_MS = 5_000;
const FLIGHT_MS = 2_000;

/** What became of a write that was not a fault. */
export type WriteOutcome =
  | Exclude<WriteAnswer, { readonly status: 'failed' | 'fenced' }>
  /** `inDoubt`: an earlier sending of it may have been applied before the newer holder wrote. */
  | { readonly status: 'fenced'; readonly token: bigint; readonly inDoubt: boolean };

/** What the state of a guard is made of. */
export interface StatesOptions {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly policy: Policy;
}

/** The state of one guard. */
export class States implements RetryHost {
  readonly clock: Clock;
  readonly random: Random;
  private readonly store: StateStore;
  private readonly outage: Outage;
  private readonly waits: Scheduler;
  private readonly reads: Coalescer<string, { readonly entry: StoredEntry | null }>;
  private readonly writes: Coalescer<StateWrite, WriteAnswer>;
  private readonly watches = new OpenWatches();
  private closed = false;

  constructor({ store, clock, random, events, policy }: StatesOptions) {
    this.store = store;
    this.clock = clock;
    this.random = random;
    this.outage = new Outage(store.name, events, policy, clock);
    this.waits = new Scheduler(clock, true);
    const common = { clock, deadlines: this.waits, maxBatch: store.traits.maxBatch };
    this.reads = new Coalescer({
      ...common,
      send: (keys, partition) =>
        this.watched(async () => (await store.read(keys)).map((entry) => ({ entry })), partition),
    });
    this.writes = new Coalescer({
      ...common,
      send: (writes, partition) => this.watched(() => store.write(writes), partition),
    });
  }

  /** The newest entry, or `null`. */
  async read(key: string): Promise<StoredEntry | null> {
    const ask = async (): Promise<StoredEntry | null> => {
      const landing = await new Promise<Landing<{ readonly entry: StoredEntry | null }>>((resolve) => {
        this.reads.submit(this.partition(key), key, key, FLIGHT_MS, resolve);
      });
      if (!landing.ok) throw landing.cause;
      return landing.answer.entry;
    };
    this.refuseWhenClosed();
    return retrying(this, BUDGET_MS, `reading state`, ask);
  }

  /**
   * Writes; `stillAllowed` is asked before every sending and throws where a lock was lost meanwhile.
   *
   * @throws GuardError `unavailable`, with `inDoubt` where a sending may have been applied.
   */
  async write(write: StateWrite, stillAllowed: () => Promise<void>): Promise<WriteOutcome> {
    this.refuseWhenClosed();
    const endMonoMs = this.clock.now().monoMs + BUDGET_MS;
    for (let failures = 0; ;) {
      await allowedOrDoubt(stillAllowed, failures > 0);
      const landing = await new Promise<Landing<WriteAnswer>>((resolve) => {
        this.writes.submit(this.partition(write.key), write.key, write, FLIGHT_MS, resolve);
      });
      if (landing.ok && landing.answer.status !== 'failed') return certain(landing.answer, failures > 0);
      const cause = causeOf(landing);
      failures += 1;
      const pauseMs = backoffMs(failures, this.random.fraction());
      if (isPermanent(cause) || this.clock.now().monoMs + pauseMs >= endMonoMs) {
        throw unavailable('writing state', cause, true);
      }
      await pause(this.clock, pauseMs);
    }
  }

  /** One page of a listing. */
  async scan(prefix: string, cursor: string | undefined, limit: number): Promise<StatePage> {
    this.refuseWhenClosed();
    return retrying(this, BUDGET_MS, 'listing state', () =>
      this.watched(() => this.inTime(this.store.scan(prefix, cursor, limit))),
    );
  }

  /** A watch ends with the guard: its listener hears of nothing after that. */
  async watch(prefix: string, listener: (change: StateChange) => void): Promise<Subscription> {
    this.refuseWhenClosed();
    const hear = (change: StateChange): void => void (this.closed || listener(change));
    const opening = retrying(this, BUDGET_MS, 'watching state', () => {
      this.refuseWhenClosed();
      return this.inTime(this.store.watch(prefix, hear), (late) => void late.close().catch(() => undefined));
    });
    return this.watches.add(opening, () => this.closed);
  }

  /** Ends all watches, also those that are just opening; waits for that no longer than `limitMs`. */
  async close(limitMs: number): Promise<void> {
    this.closed = true;
    await atMost(this.clock, limitMs, this.watches.close());
  }

  /** What comes too late is given to `giveBack`. */
  private async inTime<T>(answer: Promise<T>, giveBack: (late: T) => void = () => undefined): Promise<T> {
    let isLate = false;
    const late = (): Error => {
      isLate = true;
      return new GuardError('unavailable', `${this.store.name} did not answer in ${FLIGHT_MS} ms`);
    };
    answer.then(
      (value) => isLate && giveBack(value),
      () => undefined,
    );
    return within(this.clock, FLIGHT_MS, answer, late);
  }

  private refuseWhenClosed(): void {
    if (this.closed) throw closedError();
  }

  private partition(key: string): string {
    return this.store.partition?.(key) ?? '';
  }

  private async watched<T>(call: () => Promise<T>, partition?: string): Promise<T> {
    try {
      const answer = await this.outage.guarded(call, partition);
      this.outage.answered(partition);
      return answer;
    } catch (cause) {
      this.outage.failed(cause, partition);
      throw cause;
    }
  }
}

/** A conflict of a write that was sent before may be with itself, overwritten by others since. */
function certain(answer: Exclude<WriteAnswer, { readonly status: 'failed' }>, resent: boolean): WriteOutcome {
  if (answer.status === 'fenced') return { ...answer, inDoubt: resent };
  if (answer.status !== 'conflict' || !(resent || answer.resent)) return answer;
  const message =
    'a write was sent more than once, and the entry has moved on: nobody knows whether it was applied';
  throw new GuardError('unavailable', message, { inDoubt: true });
}

async function allowedOrDoubt(stillAllowed: () => Promise<void>, sent: boolean): Promise<void> {
  try {
    await stillAllowed();
  } catch (error) {
    if (!sent || !GuardError.is(error)) throw error;
    throw new GuardError(error.code, 'the lock was lost while a write under it was in doubt', {
      cause: error,
      inDoubt: true,
      ...(error.key === undefined ? undefined : { key: error.key }),
    });
  }
}

function causeOf(landing: Landing<WriteAnswer>): unknown {
  if (!landing.ok) return landing.cause;
  return landing.answer.status === 'failed' ? landing.answer.cause : undefined;
}
