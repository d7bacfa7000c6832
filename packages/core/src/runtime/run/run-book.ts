/**
 * The run store as the engine sees it: every change goes through the machine, has one `writeId` for all its sendings
 * (S4), and is repeated within a budget. Losing a compare-and-set is an answer; only "nobody knows" is thrown.
 */
import type { CreateRunOptions } from '../../api/run.js';
import { backoffMs } from '../../machine/backoff.js';
import type { EventDraft, MoveRefusal, RunMove } from '../../machine/run-move.js';
import type { RunEvent, RunRecord, StoredRun } from '../../machine/run-record.js';
import { step } from '../../machine/run.js';
import type { Clock, Random } from '../../port/clock.js';
import type { Failed } from '../../port/lock-backend.js';
import type { RunRef, RunStore } from '../../port/run-store.js';
import { discreet } from '../../value/discreet.js';
import { GuardError } from '../../value/error.js';
import type { Instant } from '../../value/instant.js';
import { BackendClock } from './backend-clock.js';
import { isPermanent, type Outage, unavailable } from '../flight/outage.js';
import { pause, within } from '../flight/pause.js';

/** How long an ordinary question or write is repeated. */
const BUDGET_MS = 15_000;
/** A call that is not answered by then is given up and sent again. */
const CALL_MS = 5_000;
/** How often one write may find its own record changed (by an alarm, or its own progress) and start over. */
const MAX_REBASES = 8;

/** What a book is made of. */
export interface BookParts {
  readonly store: RunStore;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly outage: Outage;
}

/** How far a write is taken. */
export interface WriteLimits {
  readonly budgetMs?: number;
  /** Asked before every repetition; `false` ends it. */
  readonly goOn?: () => boolean;
  /** Token under which the record is the writer's own: changes by others under it are not a conflict. */
  readonly own?: string;
}

/** What became of a move. */
export type Moved =
  | { readonly status: 'moved'; readonly stored: StoredRun }
  /** Somebody else moved it; `null`: it is gone. */
  | { readonly status: 'conflict'; readonly stored: StoredRun | null }
  | { readonly status: 'refused'; readonly why: MoveRefusal; readonly stored: StoredRun };

/** A write that somebody else carries out, in a transaction of the application. */
export interface PreparedWrite {
  readonly expected: string;
  readonly next: RunRecord;
  readonly event: RunEvent;
}

/** A new record that somebody else writes, in a transaction of the application. */
export interface PreparedCreate {
  readonly namespace: string;
  readonly run: RunRecord;
  readonly event: RunEvent;
}

/**
 * What an adapter finds behind `guard.runs`, beside the public part, to write a new record in a transaction of the
 * application: it writes `run` and `event` where the key has no record yet.
 */
export interface CreatableRuns {
  /** The run store, as the guard was given it: the write is good for that store only. */
  readonly store: RunStore;
  /**
   * @param askTime asks for the store's time over the connection of the transaction, where it has to be asked: the pool
   * may have no other. Without it the store is asked. @throws GuardError `invalid-argument`, `unavailable`, `closed`.
   */
  prepareCreate(
    task: string,
    options?: CreateRunOptions,
    askTime?: () => Promise<number>,
  ): Promise<PreparedCreate>;
}

/** Records of one namespace in one store. */
export class RunBook {
  /** When the store last answered. */
  lastContact: Instant | undefined;
  /** The store's clock. */
  readonly time: BackendClock;

  constructor(private readonly parts: BookParts) {
    const ask = (): Promise<number> => this.asked((store) => store.now());
    this.time = new BackendClock(parts.clock, ask, (call) => this.repeated('asking for the time', {}, call));
  }

  get namespace(): string {
    return this.parts.namespace;
  }

  get store(): RunStore {
    return this.parts.store;
  }

  /** Whether the store could not be asked when last tried. */
  get isAway(): boolean {
    return this.parts.outage.isDown;
  }

  get canCreateRunning(): boolean {
    return this.parts.store.traits.createRunning;
  }

  /** A new record, or the one that the key has already. */
  async create(
    move: RunMove & { readonly type: 'create' },
    limits: WriteLimits = {},
  ): Promise<{ readonly created: boolean; readonly stored: StoredRun }> {
    const { run, event } = this.prepareCreate(move);
    const answer = await this.repeated(`creating run ${move.run.task}`, limits, () =>
      this.asked((store) => store.create(this.namespace, run, event)),
    );
    return { created: answer.status === 'created', stored: answer.stored };
  }

  /** A new record for somebody else to write. */
  prepareCreate(move: RunMove & { readonly type: 'create' }): PreparedCreate {
    const stepped = step(null, move, this.time.estimate());
    if ('refused' in stepped)
      throw new GuardError('invalid-argument', `a run cannot be created: ${stepped.refused}`);
    return { namespace: this.namespace, run: stepped.next, event: this.signed(stepped.event) };
  }

  /** Moves a record by compare-and-set. A function is asked again before every sending. */
  move(stored: StoredRun, wish: RunMove | (() => RunMove), limits: WriteLimits = {}): Promise<Moved> {
    const writeId = this.parts.random.id();
    let current = stored;
    return this.repeated(`writing run ${stored.run.task} ${stored.run.key}`, limits, async () => {
      for (let rebases = 0; rebases < MAX_REBASES; rebases += 1) {
        const stepped = step(current.run, typeof wish === 'function' ? wish() : wish, this.time.estimate());
        if ('refused' in stepped) return { status: 'refused', why: stepped.refused, stored: current };
        const { next, event } = stepped;
        const answer = await this.asked((store) =>
          store.transition(this.namespace, current.version, next, { ...event, writeId }),
        );
        if (answer.status === 'moved') return { status: 'moved', stored: answer.stored };
        if (!isOwn(answer.stored, limits.own)) return { status: 'conflict', stored: answer.stored };
        current = answer.stored;
      }
      throw new GuardError(
        'unavailable',
        `run ${stored.run.key} was changed ${MAX_REBASES} times during one write`,
      );
    });
  }

  /** A move for somebody else to write. */
  prepare(stored: StoredRun, wish: RunMove): PreparedWrite {
    const stepped = step(stored.run, wish, this.time.estimate());
    if ('refused' in stepped) {
      throw new GuardError('stale-token', `run ${stored.run.key} cannot be moved: ${stepped.refused}`);
    }
    return { expected: stored.version, next: stepped.next, event: this.signed(stepped.event) };
  }

  get(ref: RunRef, limits: WriteLimits = {}): Promise<StoredRun | null> {
    return this.repeated(`reading run ${ref.task}`, limits, () =>
      this.asked((store) => store.get(this.namespace, ref)),
    );
  }

  /** The history of a run, oldest first. */
  events(ref: RunRef, limits: WriteLimits = {}): Promise<readonly RunEvent[]> {
    return this.repeated(`reading the history of run ${ref.task}`, limits, () =>
      this.asked((store) => store.events(this.namespace, ref)),
    );
  }

  /** Any other question or write, once: for loops that come back by themselves. */
  async asked<T>(call: (store: RunStore) => Promise<T | Failed>): Promise<T> {
    const { store, clock, outage } = this.parts;
    const late = (): GuardError =>
      new GuardError('unavailable', `${store.name} did not answer in ${CALL_MS} ms`);
    try {
      const answer = await outage.guarded(() => within(clock, CALL_MS, call(store), late));
      if (isFailed(answer)) throw answer.cause;
      this.lastContact = clock.now();
      outage.answered();
      return answer;
    } catch (error) {
      const cause = discreet(error);
      if (!isPermanent(cause)) outage.failed(cause);
      throw cause;
    }
  }

  /** Any other question or write, repeated within the budget. */
  async repeated<T>(what: string, limits: WriteLimits, call: () => Promise<T>): Promise<T> {
    const { clock, random } = this.parts;
    const endMonoMs = clock.now().monoMs + (limits.budgetMs ?? BUDGET_MS);
    for (let failures = 1; ; failures += 1) {
      try {
        return await call();
      } catch (cause) {
        const delayMs = backoffMs(failures, random.fraction());
        const spent = clock.now().monoMs + delayMs >= endMonoMs;
        // Whether a write arrived is not known; a permanent fault says that it did not.
        if (isPermanent(cause) || spent || limits.goOn?.() === false) throw unavailable(what, cause, true);
        await pause(clock, delayMs);
      }
    }
  }

  private signed(event: EventDraft): RunEvent {
    return { ...event, writeId: this.parts.random.id() };
  }
}

function isFailed(answer: unknown): answer is Failed {
  return typeof answer === 'object' && answer !== null && (answer as Partial<Failed>).status === 'failed';
}

function isOwn(stored: StoredRun | null, own: string | undefined): stored is StoredRun {
  if (stored === null || own === undefined) return false;
  const { run } = stored;
  return (run.state === 'running' || run.state === 'failed') && run.lock?.token === own;
}
