/**
 * A run in progress on this node: what the work sees of it, and the newest version of its record. All writes of one
 * attempt go through one lane, so that a buffered progress and the finish never race each other.
 */
import type { Run } from '../../api/run.js';
import type { RunFault, RunLock, RunNode, RunTrigger, StoredRun } from '../../machine/run-record.js';
import type { Clock, Timer } from '../../port/clock.js';
import type { RunStore } from '../../port/run-store.js';
import { GuardError } from '../../value/error.js';
import type { HeldLock } from '../lock/lock-service.js';
import type { PreparedWrite, RunBook } from './run-book.js';
import type { RunPolicy } from './run-task.js';
import { jsonText, keepValue, parsed } from './run-values.js';

/** At most one progress is written in this time: the newest. */
const PROGRESS_EVERY_MS = 5_000;

/** Why an attempt was told to stop. */
export type Cut = 'lock-lost' | 'timeout' | 'stalled' | 'shutdown';

/** What an active run is made of. */
export interface ActiveParts {
  readonly stored: StoredRun;
  /** The worker's mark in the record. */
  readonly by: { readonly lock: RunLock; readonly node: RunNode };
  /** `undefined`: unguarded. */
  readonly lock: HeldLock | undefined;
  readonly policy: RunPolicy;
  readonly book: RunBook;
  readonly clock: Clock;
  readonly stopSignal: AbortSignal;
}

/**
 * What an adapter needs to write the completion of the ambient run in a transaction of the application. It writes
 * `next` and `event` where the record still has `expected`, then says so by `settled(event.writeId)`; after the work
 * the engine reads back whether that transaction was committed.
 */
export interface CompletableRun {
  readonly namespace: string;
  /** The run store, as the guard was given it: the write is good for that store only. */
  readonly store: RunStore;
  /** @throws GuardError `lock-lost`, `lock-suspect`, `stale-token`. */
  prepareCompletion(value?: unknown): Promise<PreparedWrite>;
  settled(by: string): void;
}

/** One attempt. */
export class ActiveRun implements Run, CompletableRun {
  stored: StoredRun;
  /** Set once the attempt was told to stop. */
  cutBy: Cut | undefined;
  /** The work has settled, and nothing may follow. */
  over = false;
  /** The work did not heed its signal for `letGoAfter`, and was left to itself. */
  isLetGo = false;
  /** `writeId`s of completions that were handed to transactions of the application. */
  readonly staged = new Set<string>();
  /** Called by `progress()`; the attempt watches for stalls. */
  onProgress: (() => void) | undefined;
  /** Called before the signal is looked at; the attempt tells limits that have passed. */
  onLook: (() => void) | undefined;
  private controller: AbortController | undefined;
  private reason: unknown;
  private lane: Promise<unknown> = Promise.resolve();
  private progressText: string | undefined;
  private progressTimer: Timer | undefined;
  private progressAtMs = -Infinity;
  private frozen = false;

  constructor(private readonly parts: ActiveParts) {
    this.stored = parts.stored;
  }

  get id(): string {
    return this.stored.run.id;
  }
  get task(): string {
    return this.stored.run.task;
  }
  get key(): string {
    return this.stored.run.key;
  }
  get scheduledFor(): Date | undefined {
    const ms = this.stored.run.scheduledForMs;
    return ms === undefined ? undefined : new Date(ms);
  }
  get attempt(): number {
    return this.stored.run.attempt;
  }
  get trigger(): RunTrigger {
    return this.stored.run.trigger;
  }
  get lastFault(): RunFault | undefined {
    return this.stored.run.lastFault;
  }
  get lastProgress(): unknown {
    const { run } = this.stored;
    return run.state === 'running' ? parsed(run.progress) : undefined;
  }
  get guarded(): boolean {
    return this.parts.lock !== undefined;
  }
  get namespace(): string {
    return this.parts.book.namespace;
  }
  get store(): RunStore {
    return this.parts.book.store;
  }
  get stopSignal(): AbortSignal {
    return this.parts.stopSignal;
  }
  get lock(): HeldLock | undefined {
    return this.parts.lock;
  }
  get policy(): RunPolicy {
    return this.parts.policy;
  }
  get by(): ActiveParts['by'] {
    return this.parts.by;
  }
  /** The token in the record. */
  get mark(): string {
    return this.parts.by.lock.token;
  }

  get token(): bigint {
    return this.heldLock().token;
  }

  get signal(): AbortSignal {
    // What no timer could tell yet, a loss or a limit, is told here, before anybody looks at the signal (L1).
    this.parts.lock?.isHeld();
    this.onLook?.();
    this.controller ??= new AbortController();
    if (this.cutBy !== undefined && !this.controller.signal.aborted) this.controller.abort(this.reason);
    return this.controller.signal;
  }

  assertHeld(): void {
    this.heldLock().assertHeld();
  }

  progress(data: unknown): void {
    const text = jsonText('progress', data) ?? 'null';
    this.onProgress?.();
    if (this.over || this.frozen) return;
    this.progressText = text;
    this.scheduleProgress();
  }

  /** Tells the work to stop. The first reason stays. */
  cut(by: Cut, reason: unknown): void {
    if (this.cutBy !== undefined) return;
    this.cutBy = by;
    this.reason = reason;
    this.controller?.abort(reason);
  }

  /** What the work was told. */
  get cutReason(): unknown {
    return this.reason;
  }

  async prepareCompletion(value?: unknown): Promise<PreparedWrite> {
    if (this.over) throw new GuardError('stale-token', `run ${this.key} is over`, { key: this.key });
    await this.freeze();
    this.parts.lock?.assertHeld();
    const { problem: _, ...kept } = keepValue(value, this.policy.codec);
    const move = { type: 'complete', token: this.mark, node: this.parts.by.node, ...kept } as const;
    return this.parts.book.prepare(this.stored, move);
  }

  settled(by: string): void {
    this.staged.add(by);
  }

  /** No progress is written any more; resolves when the last write of one is over. */
  async freeze(): Promise<void> {
    this.frozen = true;
    this.progressTimer?.cancel();
    this.progressTimer = undefined;
    await this.lane;
  }

  private heldLock(): HeldLock {
    if (this.parts.lock !== undefined) return this.parts.lock;
    throw new GuardError('lock-lost', `run ${this.key} has no lock: it was started unguarded`, {
      key: this.key,
    });
  }

  private scheduleProgress(): void {
    if (this.progressTimer !== undefined) return;
    const { clock } = this.parts;
    const delayMs = Math.max(0, this.progressAtMs + PROGRESS_EVERY_MS - clock.now().monoMs);
    const write = (): void => {
      this.lane = this.writeProgress();
    };
    this.progressTimer = clock.setTimer(write, delayMs, { ref: false });
  }

  private async writeProgress(): Promise<void> {
    const { book, clock } = this.parts;
    const progress = this.progressText;
    this.progressTimer = undefined;
    if (progress === undefined || this.frozen) return;
    this.progressText = undefined;
    this.progressAtMs = clock.now().monoMs;
    try {
      const move = { type: 'progress', token: this.mark, progress } as const;
      const moved = await book.move(this.stored, move, { budgetMs: 0, own: this.mark });
      if (moved.status === 'moved') this.stored = moved.stored;
    } catch {
      // A progress that could not be written goes with the next one; the store's outage shows by its own event.
      this.progressText ??= progress;
    }
    if (this.progressText !== undefined && !this.frozen) this.scheduleProgress();
  }
}
