/**
 * Guard's own timer on one started node: a loop for every registered task with a schedule. What is due is judged by
 * the run store's clock, so nodes with wrong clocks agree; one whose clock is very wrong says so and stays out.
 */
import { type Instant } from '../../value/instant.js';
import type { RunEngine } from '../run/run-engine.js';
import { emit, type RunHost } from '../run/run-host.js';
import type { TaskDefinition } from '../run/run-task.js';
import { Absences } from './absences.js';
import { TaskLoop, type LoopHost } from './task-loop.js';

/** From here on a wall clock is told to be wrong. */
const SKEW_TOLD_MS = 1_000;
/** From here on the node plans nothing: one of the two clocks cannot be trusted. */
const SKEW_STOPS_MS = 300_000;
const LAG_TOLD_MS = 1_000;
/** Skew and lag are told at most so often, unless a node stops or goes on. */
const TOLD_EVERY_MS = 60_000;

/** What one node was told about its schedules. */
export interface SchedulerTerms {
  /** Whether this node schedules the task. */
  readonly wanted: (task: string) => boolean;
  /** Whether the others count this node as gone. */
  readonly isMissing: () => boolean;
  /** Whether it is because of its lock. */
  readonly lacksLock: () => boolean;
  /** Whether timers keep the process alive (L5). */
  readonly ref: boolean;
  /** For so long the store keeps the keys of records. */
  readonly keysMs: number;
}

/** The scheduler of one node. */
export class Scheduler {
  private readonly loops = new Map<string, TaskLoop>();
  private readonly node: LoopHost;
  private readonly absences: Absences;
  private ended = false;
  private stopped = false;
  private skewToldAt: Instant | undefined;
  private lagToldAt: Instant | undefined;

  constructor(
    private readonly host: RunHost,
    engine: RunEngine,
    private readonly terms: SchedulerTerms,
  ) {
    const { ref, keysMs, isMissing } = terms;
    const lagged = (lagMs: number): void => this.lagged(lagMs);
    this.node = {
      host,
      engine,
      ref,
      keysMs,
      lagged,
      isFarOff: () => this.isFarOff(),
      isMissing,
      absences: () => this.absences.all,
    };
    this.absences = new Absences(host);
  }

  /** Looks at every schedule once, and follows them from now on; tasks that are registered later too. */
  async begin(): Promise<void> {
    const { tasks } = this.host;
    tasks.onAdd = (definition) => void this.follow(definition);
    await Promise.all(tasks.names().map((name) => this.follow(tasks.get(name)!)));
  }

  async end(): Promise<void> {
    this.ended = true;
    this.host.tasks.onAdd = undefined;
    await Promise.all([...this.loops.values()].map((loop) => loop.end()));
  }

  /** Whether this node plans nothing for now: its clock cannot be trusted, or nobody knows that it is there. */
  get isOut(): boolean {
    return this.stopped || this.terms.isMissing();
  }

  private async follow(task: TaskDefinition): Promise<void> {
    const { name, schedule } = task;
    if (schedule === undefined || this.ended || this.loops.has(name) || !this.terms.wanted(name)) return;
    const loop = new TaskLoop(this.node, task, schedule);
    this.loops.set(name, loop);
    await loop.begin();
  }

  private isFarOff(): boolean {
    const isFarOff = this.judgeClock();
    const { isMissing, lacksLock } = this.terms;
    if (this.host.book.isAway) this.absences.note('store-away');
    else if (isFarOff) this.absences.note('clock-skew');
    else if (isMissing()) this.absences.note(lacksLock() ? 'locks-away' : 'store-away');
    else this.absences.note(undefined);
    return isFarOff;
  }

  private judgeClock(): boolean {
    const { clock, time } = this.host;
    const skewMs = time.skewMs();
    if (skewMs === undefined) return this.stopped;
    const stopped = Math.abs(skewMs) > SKEW_STOPS_MS;
    const changed = stopped !== this.stopped;
    this.stopped = stopped;
    if (changed || (Math.abs(skewMs) > SKEW_TOLD_MS && this.isLongAgo(this.skewToldAt))) {
      this.skewToldAt = clock.now();
      emit(this.host, 'clock-skew', { skewMs, stopped });
    }
    return stopped;
  }

  private lagged(lagMs: number): void {
    if (lagMs < LAG_TOLD_MS || !this.isLongAgo(this.lagToldAt)) return;
    this.lagToldAt = this.host.clock.now();
    emit(this.host, 'loop-lag', { lagMs: Math.round(lagMs) });
  }

  private isLongAgo(at: Instant | undefined): boolean {
    return at === undefined || this.host.clock.now().monoMs - at.monoMs >= TOLD_EVERY_MS;
  }
}
