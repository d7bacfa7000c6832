/**
 * From a wish to a run that is running under its lock, or to the reason why not.
 *
 * Create → lock → running is the order. Where a store can create a record as running in one step, an uncontended call
 * tries the lock first and saves a trip (C5); it only tries: whoever finds the lock busy creates its record, and waits
 * as a run that everybody can see.
 */
import { type Admission, admit, type LeftAlone } from '../../machine/run-admission.js';
import type { SkipReason } from '../../api/run.js';
import type { Worker } from '../../machine/run-move.js';
import type { StoredRun } from '../../machine/run-record.js';
import type { Holder } from '../../port/lock-backend.js';
import { GuardError } from '../../value/error.js';
import { pause } from '../flight/pause.js';
import { closedError } from '../lock/lock-errors.js';
import type { ClaimOutcome, HeldLock } from '../lock/lock-service.js';
import { lockKeyOf } from './active-runs.js';
import { claimToBegin, isPassedNow } from './run-claim.js';
import { runCompensation } from './run-compensation.js';
import { askerOf, codeOf, CRASH, type Entry, type EntryTerms, moveFor } from './run-entry-terms.js';
import { emit, type RunHost, tellEnd, workerUnder } from './run-host.js';

/** How often a record may move under somebody who tries to get hold of it. */
const MAX_ROUNDS = 16;
/** How soon a joiner asks again for a run that has not begun; it waits longer each time. */
const JOIN_POLL_MS = 20;
const LONGEST_JOIN_POLL_MS = 1_000;

type Busy = ClaimOutcome & { readonly status: 'busy' };

/**
 * Gets a run running. Whatever it answers or throws, no lock is left behind except in `entered`.
 *
 * @throws GuardError `unavailable`, `would-deadlock`, `closed`.
 */
export function enter(host: RunHost, terms: EntryTerms): Promise<Entry> {
  return new Entering(host, terms).run();
}

class Entering {
  private readonly lockKey: string;
  private readonly sinceMonoMs: number;
  private stored: StoredRun | undefined;
  private mine: boolean;
  private lock: HeldLock | undefined;
  /** The lock was tried a moment ago, without waiting, and was busy. */
  private tried: Busy | undefined;
  private joined = false;
  private unguarded = false;
  /** The fault with which the lock backend could not be asked. */
  private outage: unknown;

  constructor(
    private readonly host: RunHost,
    private readonly terms: EntryTerms,
  ) {
    this.lockKey = lockKeyOf(host.namespace, terms.run);
    this.sinceMonoMs = host.clock.now().monoMs;
    this.stored = terms.given;
    this.mine = terms.mine ?? false;
  }

  async run(): Promise<Entry> {
    let entry: Entry | undefined;
    try {
      entry = await this.enter().catch((error: unknown) => this.unavailable(error));
      return entry;
    } catch (error) {
      // The caller is told by the error; the record says it too, where the store can be reached.
      if (this.terms.given === undefined) await this.skip(codeOf(error)).catch(() => undefined);
      throw this.host.stopSignal.aborted && GuardError.is(error, 'aborted') ? closedError() : error;
    } finally {
      if (entry?.entered !== true) await this.lock?.release();
    }
  }

  private async enter(): Promise<Entry> {
    if (this.stored === undefined && this.host.book.canCreateRunning && !this.unguarded) {
      const outcome = await this.claim(0);
      if (outcome.status === 'busy') this.tried = outcome;
    }
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const stored = this.stored ?? (await this.create());
      if (this.mine && stored.run.state === 'running') return this.enteredAs('run-started', stored);
      const asker = askerOf(this.host, this.terms, stored.run, this.mine);
      const admission = admit(stored.run, asker, await this.host.time.now());
      const entry =
        admission.act === 'leave' ? await this.leave(admission.why) : await this.act(admission, stored);
      if (entry !== undefined) return entry;
    }
    return this.left('busy');
  }

  private async create(): Promise<StoredRun> {
    const begins = this.unguarded || (this.lock !== undefined && !this.cameLate());
    const start = begins ? { start: this.worker() } : {};
    const { run, availableAtMs } = this.terms;
    const due = availableAtMs === undefined ? {} : { availableAtMs };
    const answer = await this.host.book.create({ type: 'create', run, ...due, ...start });
    this.stored = answer.stored;
    this.mine = answer.created;
    return answer.stored;
  }

  /** Leaves the record alone; who wants its result waits for the lock of whoever works on it, or is about to. */
  private async leave(why: LeftAlone): Promise<Entry | undefined> {
    const { policy, waitMs } = this.terms;
    const joins = policy.onDuplicate === 'result' && (why === 'running' || why === 'pending');
    if (!joins || this.joined || waitMs === 0) return this.left(why);
    this.joined = true;
    await this.giveBack();
    await this.join(waitMs);
    return this.stored === undefined || this.lock !== undefined ? undefined : this.leftAsItIs(why);
  }

  /** A lock that came before its run had begun goes back at once: whoever made the record is next in line for it. */
  private async join(waitMs: number): Promise<void> {
    const { clock, stopSignal } = this.host;
    const endMs = clock.now().monoMs + waitMs;
    for (let round = 1; ; round += 1) {
      await this.claim(Math.max(0, endMs - clock.now().monoMs));
      await this.reread();
      if (this.lock === undefined || this.stored === undefined) return;
      const asker = askerOf(this.host, this.terms, this.stored.run, this.mine);
      const admission = admit(this.stored.run, asker, await this.host.time.now());
      if (admission.act !== 'leave' || admission.why !== 'pending') return;
      await this.giveBack();
      const leftMs = endMs - clock.now().monoMs;
      if (leftMs <= 0) return;
      await pause(clock, Math.min(leftMs, JOIN_POLL_MS * round, LONGEST_JOIN_POLL_MS), stopSignal);
    }
  }

  private async giveBack(): Promise<void> {
    const { lock } = this;
    this.lock = undefined;
    await lock?.release();
  }

  /** One step with the record; `undefined`: look at it again. */
  private async act(
    admission: Exclude<Admission, { act: 'leave' }>,
    stored: StoredRun,
  ): Promise<Entry | undefined> {
    const { act } = admission;
    if (act === 'expire') return this.expire(stored);
    if (this.unguarded && act === 'take-over') return this.left('running');
    // Waiting may have taken long: what was right before it is judged again after it.
    if (this.lock === undefined && !this.unguarded) return this.take(act === 'take-over');
    if (this.cameLate() || (await isPassedNow(this.host, this.terms, this.sinceMonoMs)))
      return this.left('pending');
    const goOn = (): boolean => this.lock === undefined || this.lock.isHeld();
    const wish = moveFor(act, stored.run, this.terms, this.worker(), this.host.time.estimate());
    const moved = await this.host.book.move(stored, wish, { goOn });
    if (moved.status === 'refused') return this.left('busy');
    this.stored = moved.stored ?? undefined;
    this.mine = moved.status === 'moved';
    if (moved.status === 'moved') return this.afterMove(act, moved.stored);
    return this.stored === undefined && this.terms.given !== undefined ? this.left('busy') : undefined;
  }

  private async afterMove(act: Admission['act'], stored: StoredRun): Promise<Entry | undefined> {
    const crashed = act === 'take-over';
    if (stored.run.state === 'running')
      return this.enteredAs(crashed ? 'run-taken-over' : 'run-started', stored);
    tellEnd(this.host, stored.run, crashed ? CRASH : undefined);
    const { compensate, policy } = this.terms;
    if (compensate === undefined || stored.run.state !== 'failed') return undefined;
    const by = this.worker();
    this.stored = await runCompensation(this.host, { stored, by, lock: this.lock, policy, compensate });
    return undefined;
  }

  private async expire(stored: StoredRun): Promise<Entry | undefined> {
    const moved = await this.host.book.move(stored, { type: 'expire', reason: 'startingDeadline' });
    this.stored = moved.stored ?? undefined;
    this.mine = false;
    if (moved.status !== 'moved') return this.stored === undefined ? this.left('busy') : undefined;
    emit(this.host, 'run-expired', { run: moved.stored.run });
    return this.left('expired');
  }

  /** Gets the lock, or says why not. `fromOther`: the record is running, and only its orphan could be had. */
  private async take(fromOther: boolean): Promise<Entry | undefined> {
    const { waitMs, sweeping, policy, given, canGoOn } = this.terms;
    const waits = !fromOther || sweeping === true || policy.onDuplicate === 'result' ? waitMs : 0;
    const outcome = waits === 0 && this.tried !== undefined ? this.tried : await this.claim(waits);
    this.tried = undefined;
    if (outcome.status === 'granted') return undefined;
    if (sweeping) return this.left('busy');
    if (fromOther) {
      if (waits > 0) await this.reread();
      return this.leftAsItIs('running');
    }
    const overlap = given === undefined ? await this.overlap(outcome) : undefined;
    if (overlap !== undefined) return overlap;
    // Nobody can say that a run holds it: a release on its way, a claim before its record, a node that died.
    const again = await this.claim(this.host.sweepIntervalMs);
    if (again.status === 'granted') return undefined;
    if (!this.mine) return this.left('busy');
    // Meanwhile it may be a run that holds it: then nothing stays behind that would run later.
    const later = given === undefined ? await this.overlap(again) : undefined;
    if (later !== undefined) return later;
    return canGoOn ? this.left('pending') : this.skipped('busy');
  }

  /** Skipped, if the lock is held by another run whose record says that it is running. */
  private async overlap(busy: Busy): Promise<Entry | undefined> {
    const { task, keyed } = this.terms.run;
    if (keyed === true) return undefined;
    const key = (busy.holder ?? (await this.holder()))?.run;
    if (key === undefined || key === this.stored?.run.key) return undefined;
    const other = await this.host.book.get({ task, key });
    return other?.run.state === 'running' ? this.skipped('overlap', key) : undefined;
  }

  /** Who waited in a queue was not told for whom. */
  private async holder(): Promise<Holder | undefined> {
    const infos = await this.host.locks.inspect([this.lockKey]).catch(() => []);
    return infos.find(({ held }) => held)?.holder;
  }

  private async skipped(reason: 'overlap' | 'busy', blockedBy?: string): Promise<Entry> {
    await this.skip(reason, blockedBy);
    return this.left(reason);
  }

  /** Records why one's own pending run did not happen. For an occurrence that is final, so only overlap says it. */
  private async skip(reason: string, blockedBy?: string): Promise<void> {
    const { stored } = this;
    if (!this.mine || stored?.run.state !== 'pending') return;
    if (stored.run.scheduledForMs !== undefined && reason !== 'overlap') return;
    const blocked = blockedBy === undefined ? {} : { blockedBy };
    const moved = await this.host.book.move(stored, { type: 'skip', reason, ...blocked });
    this.stored = moved.stored ?? undefined;
  }

  /** The lock backend cannot be asked: the task says what then. */
  private async unavailable(error: unknown): Promise<Entry> {
    const { policy, sweeping, run } = this.terms;
    if (error !== this.outage || sweeping || policy.onUnavailable === 'throw') throw error;
    if (policy.onUnavailable === 'skip') {
      if (this.stored === undefined) await this.create();
      await this.skip('unavailable');
      return this.left('unavailable');
    }
    this.unguarded = true;
    const entry = await this.enter();
    if (entry.entered) emit(this.host, 'run-unguarded', { task: run.task, key: run.key, cause: error });
    return entry;
  }

  private cameLate(): boolean {
    return this.lock !== undefined && this.host.time.estimate() > (this.terms.beginUntilMs ?? Infinity);
  }

  private async claim(waitMs: number): Promise<ClaimOutcome> {
    const { run, policy, sweeping } = this.terms;
    try {
      // A sweep comes back by itself: it does not wait for strays.
      const outcome = await claimToBegin(this.host, { run, policy, waitMs, strayMs: sweeping ? 0 : waitMs });
      if (outcome.status === 'granted') this.lock = outcome.lock;
      return outcome;
    } catch (error) {
      if (GuardError.is(error, 'unavailable')) this.outage = error;
      throw error;
    }
  }

  private async reread(): Promise<void> {
    const { task, key } = this.terms.run;
    const before = this.stored?.version;
    this.stored = (await this.host.book.get({ task, key })) ?? undefined;
    if (this.stored?.version !== before) this.mine = false;
  }

  private worker(): Worker {
    return workerUnder(this.host, this.lockKey, this.lock);
  }

  private async enteredAs(event: 'run-started' | 'run-taken-over', stored: StoredRun): Promise<Entry> {
    // A slow store can use up a lease: work never begins under a lock that is not held.
    await this.lock?.assertHeldSoon();
    emit(this.host, event, { run: stored.run });
    return { entered: true, stored, by: this.worker(), lock: this.lock };
  }

  /** The record may have come to its end while somebody waited for its lock. */
  private leftAsItIs(reason: LeftAlone): Entry {
    const state = this.stored?.run.state;
    return this.left(state === undefined || state === 'pending' || state === 'running' ? reason : state);
  }

  private left(reason: SkipReason): Entry {
    return { entered: false, reason, stored: this.stored };
  }
}
