/**
 * The schedule of one task on one node: wakes when an instant is due by the run store's time, looks, and does what the
 * machine says. Waking early, late, twice or after a sleep changes nothing: what is due follows from the record alone.
 * It also looks once in every sweep interval, for what other nodes left behind; so no timer is ever long. A node that
 * could begin nothing looks too, and leaves what is due to the others for as long as one of them may take it.
 */
import { calendarOf, storedOffsetMs } from './definition.js';
import { type Absence, noted } from '../../machine/absence.js';
import { decidedIn } from '../../machine/passed-over.js';
import { type Look, nextDueMs, otherTerms, plan, type Plan } from '../../machine/schedule.js';
import { occurrenceKey, type TaskRecord } from '../../machine/task-record.js';
import type { StoredTask } from '../../port/run-store.js';
import type { Timer } from '../../port/clock.js';
import { lockKeyOf } from '../run/active-runs.js';
import { recordedOf } from '../run/recorded.js';
import type { RunEngine } from '../run/run-engine.js';
import { emit, type RunHost } from '../run/run-host.js';
import type { TaskDefinition, TaskSchedule } from '../run/run-task.js';
import { Occurrences, passOver } from './occurrences.js';
import { SuccessWatch } from './success-watch.js';
import { readTask, writeTask } from './task-book.js';

/** How often the record may move under one look; then the next one goes on. */
const MAX_ROUNDS = 16;
const AFTER_FAULT_MS = 1_000;
const JITTER = 0.2;
/** A definition that was put in force so recently is alive, although its node may not be announced yet. */
const YOUNG_MS = 20_000;
/** Nodes lose their locks one after another when the backend is away: only who is not announced for so long is gone. */
const GONE_MS = 20_000;
/** Planned instants without a record that one look settles. */
const SETTLED_AT_ONCE = 32;

/** What all loops of a node share. */
export interface LoopHost {
  readonly host: RunHost;
  readonly engine: RunEngine;
  /** Whether timers keep the process alive (L5). */
  readonly ref: boolean;
  /** For so long the store keeps the keys of records: what is older and not there may have been pruned. */
  readonly keysMs: number;
  /** Told how late a timer came. */
  lagged(lagMs: number): void;
  /** Whether this node plans nothing for now: its clock cannot be trusted. */
  isFarOff(): boolean;
  /** Whether the others count this node as gone: its lock, or the store, is away. */
  isMissing(): boolean;
  /** What kept this node from planning, since before it was up. */
  absences(): readonly Absence[];
}

/** The loop of one task. */
export class TaskLoop {
  private readonly host: RunHost;
  private readonly occurrences: Occurrences;
  private readonly success: SuccessWatch;
  private readonly told = new Set<string>();
  private sinceMs = 0;
  private markMs: number | undefined;
  /** Since when no node is announced that follows the definition in force, which is another one. */
  private goneSinceMonoMs: number | undefined;
  private timer: Timer | undefined;
  private ended = false;
  private looking: Promise<void> = Promise.resolve();

  constructor(
    private readonly node: LoopHost,
    private readonly task: TaskDefinition,
    private readonly schedule: TaskSchedule,
  ) {
    this.host = node.host;
    this.occurrences = new Occurrences(node.host, node.engine, task, schedule.offsetMs);
    this.success = new SuccessWatch(node.host, task.name, schedule);
  }

  /** Looks for the first time, and goes on by itself. Never rejects: faults are events. */
  async begin(): Promise<void> {
    this.sinceMs = this.host.time.estimate();
    this.looking = this.look();
    await this.looking;
  }

  /** Ends the loop. What was begun is the engine's. */
  async end(): Promise<void> {
    this.ended = true;
    this.timer?.cancel();
    this.success.end();
    await this.looking;
  }

  private async look(): Promise<void> {
    let faulty = false;
    try {
      await this.host.time.now();
      if (!this.node.isFarOff()) await this.settleAndPlan();
      await this.success.look();
    } catch (error) {
      faulty = true;
      this.goneSinceMonoMs = undefined;
      if (!this.ended) emit(this.host, 'error', { error, during: `the schedule of ${this.task.name}` });
    }
    this.arm(faulty);
  }

  private arm(faulty: boolean): void {
    if (this.ended) return;
    const { clock, time, random, sweepIntervalMs } = this.host;
    const nowMs = time.atLeast();
    const longestMs = sweepIntervalMs * (1 - JITTER * random.fraction());
    const dueMs = nextDueMs(this.schedule, this.markMs, nowMs) ?? Infinity;
    const delayMs = Math.max(Math.min(dueMs - nowMs, faulty ? AFTER_FAULT_MS : longestMs), 0);
    const expectedMonoMs = clock.now().monoMs + delayMs;
    const wake = (): void => {
      this.node.lagged(clock.now().monoMs - expectedMonoMs);
      this.looking = this.look();
    };
    this.timer = clock.setTimer(wake, delayMs, { ref: this.node.ref });
  }

  private async settleAndPlan(): Promise<void> {
    const { host, task } = this;
    // A pause that is over is settled in steps: what came before it, what fell into it, what came after it.
    let inSteps = false;
    const isHindered = this.isHindered();
    // In the same trouble the others could not announce themselves: they are not gone.
    if (isHindered) this.goneSinceMonoMs = undefined;
    for (let round = 0; round < MAX_ROUNDS && !this.ended; round += 1) {
      const stored = await readTask(host, task.name);
      if (stored !== null) await this.settle(stored.record);
      if (isHindered && !(await this.isLeft(stored?.record))) return;
      const answer = await this.planFor(stored, isHindered);
      this.markMs = stored?.record.lowWaterMarkMs;
      this.tellOtherTerms(answer.act === 'write' ? answer.next : stored?.record);
      if (answer.act !== 'write') return this.tellIdle(answer.act, stored);
      const sentAt = host.clock.now();
      if (!(await writeTask(host, stored, answer.next))) continue;
      this.markMs = answer.next.lowWaterMarkMs;
      const isStep = stored?.record.gaps !== undefined;
      inSteps ||= isStep;
      await this.occurrences.begin(answer.runs, sentAt, inSteps || isHindered);
      if (!isStep) return this.settle({ ...answer.next, planned: [] });
    }
  }

  /** It could begin nothing: the others count it as gone, or work of this task goes on here without its lock. */
  private isHindered(): boolean {
    const { host, node, task } = this;
    return node.isMissing() || host.active.hasStray(lockKeyOf(host.namespace, { task: task.name, key: '' }));
  }

  /**
   * Whether a node that is hindered plans all the same: what is due and was left by all others for a sweep interval has
   * a record then, which can be told of as overdue. One is enough: while it waits the others stay where they are, and
   * are settled in one step by whoever can begin them.
   */
  private async isLeft(record: TaskRecord | undefined): Promise<boolean> {
    const { host, schedule, task } = this;
    const { definition, lowWaterMarkMs: markMs, planned = [] } = record ?? {};
    if (markMs === undefined || definition?.hash !== schedule.definition.hash) return false;
    const dueMs = (schedule.calendar.next(markMs) ?? Infinity) + schedule.offsetMs;
    if (dueMs > host.time.estimate() - host.sweepIntervalMs) return false;
    const newest = await host.book.get({ task: task.name, key: occurrenceKey(markMs) }, { budgetMs: 0 });
    if (newest === null) return !planned.some(({ instantMs }) => instantMs === markMs);
    return newest.run.state !== 'pending';
  }

  private async planFor(stored: StoredTask | null, isHindered: boolean): Promise<Plan> {
    const { host, schedule, task } = this;
    const record = stored?.record;
    const other = record?.definition?.hash === schedule.definition.hash ? undefined : record?.definition;
    const look: Look = {
      task: task.name,
      record,
      nowMs: host.time.atLeast(),
      followsSinceMs: this.sinceMs,
      replaces: other !== undefined && (await this.replaces(other)),
      storedCalendar: other === undefined ? undefined : calendarOf(other.text),
      recorded: this.occurrences.recorded,
      settledUpToMs: host.time.estimate() - host.sweepIntervalMs,
      locksAnswer: !isHindered && !host.lockOutages.isAway,
      absences: this.absences(record),
    };
    const answer = plan(schedule, look);
    const calendar = other === undefined ? schedule.calendar : look.storedCalendar;
    if (answer.act !== 'write' || calendar === undefined) return answer;
    const decided = decidedIn(calendar, record, answer.next);
    // Where all of them are run, those that have a record show it when theirs is made.
    if (decided.length === answer.runs.length) return answer;
    const all = new Set([...decided, ...answer.runs.map(({ instantMs }) => instantMs)]);
    const asked = await recordedOf(host, task.name, [...all]);
    return asked.size === 0
      ? answer
      : plan(schedule, { ...look, recorded: (at) => asked.has(at) || look.recorded(at) });
  }

  /** What was not due yet by the jitter that is stored came together with what was: nobody was late. */
  private absences(record: TaskRecord | undefined): readonly Absence[] {
    const { host, node, schedule, task } = this;
    const all = node.absences();
    const storedMs = storedOffsetMs(task.name, record?.definition?.terms?.text);
    if (storedMs === undefined || storedMs <= schedule.offsetMs) return all;
    return noted(all, { cause: 'shorter-jitter', sinceMs: host.time.estimate() - storedMs });
  }

  private tellIdle(act: Exclude<Plan['act'], 'write'>, stored: StoredTask | null): void {
    if (act === 'wait') return;
    if (act === 'full') {
      const error = new Error('too many occurrences wait for their records');
      return emit(this.host, 'error', { error, during: `the schedule of ${this.task.name}` });
    }
    this.tellConflict(this.schedule.definition.text, stored?.record.definition?.text ?? '');
  }

  /** A node that started later decides otherwise about instants before they begin: each goes by its own. */
  private tellOtherTerms(record: TaskRecord | undefined): void {
    const { schedule } = this;
    const other = otherTerms(schedule, record);
    if (other === undefined || schedule.terms === undefined) return;
    const [own, inForce] = [schedule.terms.split('; '), other.split('; ')];
    const differing = (some: readonly string[], others: readonly string[]): string =>
      some.filter((one) => !others.includes(one)).join('; ');
    this.tellConflict(differing(own, inForce), differing(inForce, own));
  }

  private tellConflict(own: string, inForce: string): void {
    const name = `conflict ${inForce}`;
    if (this.told.has(name)) return;
    this.told.add(name);
    emit(this.host, 'schedule-conflict', { task: this.task.name, own, inForce });
  }

  /** Of two definitions the later one schedules, until no node that follows it was there for a while. */
  private async replaces(stored: { readonly hash: string; readonly sinceMs: number }): Promise<boolean> {
    const { host, task } = this;
    if (this.sinceMs > stored.sinceMs) return true;
    const nodes = await host.book.asked((store) => store.nodes(host.namespace));
    const { monoMs } = host.clock.now();
    if (nodes.some(({ schedules }) => schedules?.[task.name] === stored.hash))
      this.goneSinceMonoMs = undefined;
    else this.goneSinceMonoMs ??= monoMs;
    if (host.time.estimate() - stored.sinceMs < YOUNG_MS) return false;
    return monoMs - (this.goneSinceMonoMs ?? Infinity) >= GONE_MS;
  }

  /** Writes what another node, or this one, planned and did not write: a summary, records of instants. */
  private async settle({ summary, planned = [] }: TaskRecord): Promise<void> {
    if (summary !== undefined && !summary.told) {
      const name = `summary ${summary.fromMs}`;
      if (!this.told.has(name)) await passOver(this.host, this.task.name, summary);
      this.told.add(name);
    }
    const { occurrences, host, node } = this;
    const nowMs = host.time.estimate();
    const lacking = planned.filter(({ instantMs, plannedAtMs }) => {
      if (occurrences.recorded(instantMs) || occurrences.isEntering(instantMs)) return false;
      // Its record may have come and gone: it is not run again.
      if (plannedAtMs <= nowMs - node.keysMs) occurrences.remember(instantMs);
      return plannedAtMs <= nowMs - host.sweepIntervalMs && plannedAtMs > nowMs - node.keysMs;
    });
    if (lacking.length > 0) await this.occurrences.backlog(lacking.slice(0, SETTLED_AT_ONCE));
  }
}
