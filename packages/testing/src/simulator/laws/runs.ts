/**
 * What really became of every run. The records are read where they are kept, in the order in which they are written,
 * and each must follow from the one before it: nothing leads out of "completed", and only the grant that a record
 * names can finish it (S7).
 */
import type { RunRecord, StateWrite } from '@guard/core';
import type { Stage } from '../stage.js';

/** Keys of records, under which this book finds them. */
export const RECORDS_PREFIX = 'sim/run/r/';

/** What a state store keeps of a run. */
interface KeptRun {
  readonly run: RunRecord;
  readonly events: readonly { readonly what: string; readonly token?: string }[];
}

/** All runs of one simulation. */
export class Runs {
  readonly #stage: Stage;
  readonly #known = new Map<string, RunRecord>();
  /** What works returned, and whether their callers were told that it is not recorded. */
  readonly #returned = new Map<string, 'open' | 'refused'>();
  /** Results that a caller was told to be the recorded one, by task and key. */
  readonly #told = new Map<string, string>();

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Books a write that the store applied. */
  written({ key, value }: StateWrite): void {
    if (!key.startsWith(RECORDS_PREFIX) || value === null) return;
    const { run, events } = JSON.parse(value) as KeptRun;
    const before = this.#known.get(key);
    this.#known.set(key, run);
    if (before?.state === run.state && run.state !== 'running') return;
    this.#stage.journal.note(`run ${run.task} ${run.key} is ${run.state}${tokenOf(run)}`);
    this.#stage.journal.count(`run ${run.state}`);
    if (before?.state === 'completed') this.#broken(`${run.key} is ${run.state} after it was completed`);
    if (run.state === 'running' && before?.state === 'running') this.#takenOver(before, run);
    if (run.state === 'completed') this.#completed(before, run, events.at(-1)?.token);
  }

  /** A work is about to return this. */
  returns(value: string): void {
    this.#returned.set(value, 'open');
  }

  /** A caller, whose own work ran, was told that its result is the recorded one. */
  toldCompleted(task: string, key: string, value: string): void {
    const name = `${task} ${key}`;
    const other = this.#told.get(name);
    if (other !== undefined)
      this.#broken(`two callers were told that they completed ${name}: ${other}, ${value}`);
    this.#told.set(name, value);
    const record = [...this.#known.values()].find((run) => run.task === task && run.key === key);
    if (record?.state !== 'completed' || record.value !== JSON.stringify(value))
      this.#broken(`${name}: a caller was told ${value}, and the record is ${record?.state}`);
  }

  /** A caller was told that its result is not recorded. */
  toldRefused(value: string): void {
    this.#returned.set(value, 'refused');
    for (const run of this.#known.values())
      if (run.state === 'completed' && run.value === JSON.stringify(value))
        this.#broken(`${run.key}: ${value} is recorded, and its caller was told that it is not`);
  }

  /** Runs of registered tasks that nobody has brought to an end. */
  open(tasks: readonly string[]): string[] {
    const isOpen = (run: RunRecord): boolean =>
      run.state === 'pending' ||
      run.state === 'running' ||
      (run.state === 'failed' && run.compensation === 'due');
    return [...this.#known.values()]
      .filter((run) => tasks.includes(run.task) && isOpen(run))
      .map(({ task, key, state }) => `${task} ${key} is ${state}`);
  }

  #takenOver(before: RunRecord & { state: 'running' }, run: RunRecord & { state: 'running' }): void {
    const [from, to] = [BigInt(before.lock.token), BigInt(run.lock.token)];
    if (to > from) this.#stage.journal.count('run taken over');
    if (to < from) this.#broken(`${run.key} runs under ${to} after ${from}`);
  }

  #completed(before: RunRecord | undefined, run: RunRecord & { state: 'completed' }, token = ''): void {
    if (before?.state !== 'running') return this.#broken(`${run.key} is completed after ${before?.state}`);
    if (before.lock.token !== token)
      this.#broken(`${run.key} runs under ${before.lock.token}, and ${token} completed it`);
    const value = run.value === undefined ? '' : (JSON.parse(run.value) as string);
    const returned = this.#returned.get(value);
    if (returned === undefined)
      this.#broken(`${run.key} is completed with ${run.value}, which no work returned`);
    if (returned === 'refused') this.#broken(`${run.key} is completed with ${run.value}, which was refused`);
    if (run.late) this.#stage.journal.count('run completed late');
  }

  #broken(message: string): void {
    this.#stage.journal.broken('S7', `run ${message}`);
  }
}

function tokenOf(run: RunRecord): string {
  return run.state === 'running' ? ` under ${run.lock.token}` : '';
}
