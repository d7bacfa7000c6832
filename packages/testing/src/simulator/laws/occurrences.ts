/**
 * What became of every instant of a schedule, read where the task's record is kept: the mark only grows, and whatever it
 * passes is planned or lies in a summary, never both (S7, S8). An instant leaves the list of what was planned only once
 * it has its record, and a summary is followed by another only once it has its own.
 */
import type { RunRecord, StateWrite, TaskRecord } from '@guard/core';
import type { Stage } from '../stage.js';
import { RECORDS_PREFIX } from './runs.js';

/** The scheduled task of a simulation. */
export const SCHEDULED = 'tick';

/** All occurrences of one simulation. */
export class Occurrences {
  readonly #stage: Stage;
  readonly #taskKey: string;
  readonly #periodMs: number;
  readonly #planned = new Set<number>();
  readonly #recorded = new Set<number>();
  readonly #summaries = new Set<number>();
  #task: TaskRecord | undefined;

  constructor(stage: Stage, taskKey: string) {
    this.#stage = stage;
    this.#taskKey = taskKey;
    this.#periodMs = stage.plan.periodMs;
  }

  /** Books a write that the store applied. */
  written({ key, value }: StateWrite): void {
    if (value === null) return;
    if (key === this.#taskKey) this.#looked(JSON.parse(value) as TaskRecord);
    if (key.startsWith(RECORDS_PREFIX)) this.#begun((JSON.parse(value) as { run: RunRecord }).run);
  }

  /** Instants that were planned and have no record yet. */
  lacking(): readonly number[] {
    return (this.#task?.planned ?? [])
      .map(({ instantMs }) => instantMs)
      .filter((at) => !this.#recorded.has(at));
  }

  #begun(run: RunRecord): void {
    if (run.task !== SCHEDULED) return;
    if (run.state === 'expired' && run.summary !== undefined) this.#summaries.add(run.summary.fromMs);
    const { scheduledForMs: at } = run;
    if (at === undefined) return;
    if (!this.#planned.has(at)) this.#broken('S7', `${run.key} has a record, and nobody planned it`);
    this.#recorded.add(at);
  }

  #looked(next: TaskRecord): void {
    const before = this.#task;
    this.#task = next;
    const fresh = (next.planned ?? []).filter(
      ({ instantMs }) => !before?.planned?.some((one) => one.instantMs === instantMs),
    );
    const { lowWaterMarkMs: toMs = -Infinity } = next;
    const fromMs = before?.lowWaterMarkMs ?? toMs;
    if (toMs < fromMs) this.#broken('S7', `the mark goes back from ${fromMs} to ${toMs}`);
    for (const { instantMs } of fresh) {
      this.#stage.journal.count('occurrence planned');
      if (instantMs <= fromMs || this.#planned.has(instantMs))
        this.#broken('S7', `${instantMs} is planned again`);
      this.#planned.add(instantMs);
    }
    for (
      let at = (Math.floor(fromMs / this.#periodMs) + 1) * this.#periodMs;
      at <= toMs;
      at += this.#periodMs
    )
      this.#passed(at, next);
    this.#left(before, next);
  }

  /** An instant that the mark passed. */
  #passed(at: number, { planned = [], summary }: TaskRecord): void {
    const isPlanned = planned.some(({ instantMs }) => instantMs === at);
    const isPassedOver = summary !== undefined && summary.fromMs < at && at <= summary.toMs;
    if (isPassedOver) this.#stage.journal.count('instant passed over');
    if (isPlanned === isPassedOver)
      this.#broken(
        isPlanned ? 'S7' : 'S8',
        `${at} is ${isPlanned ? 'planned and' : 'neither planned nor'} passed over`,
      );
  }

  /** What is not in the record any more. */
  #left(before: TaskRecord | undefined, next: TaskRecord): void {
    for (const { instantMs } of before?.planned ?? [])
      if (!this.#recorded.has(instantMs) && !next.planned?.some((one) => one.instantMs === instantMs))
        this.#broken('S8', `${instantMs} is forgotten, and has no record`);
    const told = before?.summary?.fromMs;
    if (told !== undefined && next.summary?.fromMs !== told && !this.#summaries.has(told))
      this.#broken('S8', `what was passed over from ${told} is forgotten, and has no record`);
  }

  #broken(promise: 'S7' | 'S8', message: string): void {
    this.#stage.journal.broken(promise, `schedule: ${message}`);
  }
}
