/**
 * What every started node looks for, again and again: runs whose lock nobody holds, attempts that are due, pending
 * runs that nobody began, compensations that nobody finishes. Nothing is decided here: whatever is found is handed to
 * the engine, which takes the run's lock first; so any number of nodes may sweep, and being late costs only time.
 */
import type { RunRecord, StoredRun } from '../../machine/run-record.js';
import { NO_TOKEN } from '../../machine/run.js';
import type { Timer } from '../../port/clock.js';
import type { LockInfo } from '../../port/lock-backend.js';
import { elapsed } from '../../value/instant.js';
import { joinParts } from '../../value/key.js';
import type { RunEngine } from './run-engine.js';
import { lockKeyOf } from './active-runs.js';
import { emit, inspectAll, type RunHost, tellEnd } from './run-host.js';
import type { TaskDefinition } from './run-task.js';
import { goThrough, Heads, Lines } from './sweep-lines.js';
import { endStray, Strays } from './sweep-strays.js';
import { Unreadable } from './sweep-unreadable.js';

const PAGE = 100;
/** Pages of one sweep; what is beyond them is found when these are done. */
const MAX_PAGES = 10;
/** Runs that one node goes on with at the same time. */
const MAX_ADOPTED = 64;
const JITTER = 0.2;
/** A pending run that was due this many sweep intervals ago raises the alarm. */
const OVERDUE_SWEEPS = 3;
const PRUNE_EVERY_MS = 600_000;
const PRUNE_LIMIT = 500;

/** What is kept for how long. */
export interface Retention {
  readonly recordsMs: number;
  readonly keysMs: number;
}

/** The sweep of one node. */
export class Sweep {
  private timer: Timer | undefined;
  private ended = false;
  private sweeping: Promise<void> = Promise.resolve();
  private readonly adopted = new Set<string>();
  private readonly heads: Heads;
  private readonly strays: Strays;
  private readonly unreadable: Unreadable;
  private prunedAtMonoMs = -Infinity;

  /** `tasks` are the names that this node sweeps for. */
  constructor(
    private readonly host: RunHost,
    private readonly engine: RunEngine,
    private readonly tasks: () => readonly string[],
    private readonly retain: Retention,
  ) {
    const patienceMs = OVERDUE_SWEEPS * host.sweepIntervalMs;
    this.heads = new Heads(host.clock, patienceMs);
    this.strays = new Strays(host.clock, patienceMs);
    this.unreadable = new Unreadable(host);
  }

  begin(): void {
    if (this.ended) return;
    const { clock, random, sweepIntervalMs } = this.host;
    const delayMs = sweepIntervalMs * (1 - JITTER + 2 * JITTER * random.fraction());
    const run = (): void => {
      this.sweeping = this.once().finally(() => this.begin());
    };
    this.timer = clock.setTimer(run, delayMs, { ref: false });
  }

  /** Ends the loop. What was adopted is the engine's. */
  async end(): Promise<void> {
    this.ended = true;
    this.timer?.cancel();
    await this.sweeping;
  }

  /** One sweep. A fault ends this one, never the loop. */
  private async once(): Promise<void> {
    try {
      // A node that was paused or cut off knows nothing yet: it makes contact first, and looks next time.
      if (this.wasAway()) await this.host.time.refresh();
      else await this.sweepPages();
      await this.prune();
    } catch (error) {
      if (!this.ended) emit(this.host, 'error', { error, during: 'a sweep' });
    }
  }

  private wasAway(): boolean {
    const { book, clock, sweepIntervalMs } = this.host;
    const { lastContact } = book;
    return lastContact === undefined || elapsed(lastContact, clock.now(), sweepIntervalMs) !== 'before';
  }

  private async sweepPages(): Promise<void> {
    const { book, namespace, sweepIntervalMs } = this.host;
    const tasks = this.tasks();
    if (tasks.length === 0) return;
    const lines = new Lines();
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES && !this.ended; page += 1) {
      const from = cursor === undefined ? {} : { cursor };
      const query = { tasks, overdueMs: sweepIntervalMs, limit: PAGE, ...from };
      const found = await book.asked((store) => store.due(namespace, query));
      this.unreadable.meet(found.unreadable);
      await this.look(found.runs, lines);
      cursor = found.cursor;
      if (cursor === undefined) break;
    }
    this.unreadable.swept();
    lines.isCut = cursor !== undefined;
    await this.serve(lines);
  }

  private async look(runs: readonly StoredRun[], lines: Lines): Promise<void> {
    const { active } = this.host;
    for (const { run } of runs) if (active.works(run)) lines.runs(run);
    const idle = runs.filter(({ run }) => !active.works(run));
    await this.holdForeign(idle.filter(({ run }) => this.isForeign(run)));
    const own = idle.filter(({ run }) => !this.isForeign(run));
    const infos = await this.locksOf(own);
    for (const found of own) {
      const { run } = found;
      const task = this.host.tasks.get(run.task);
      // Where the locks cannot be asked nothing is done about a run that may be worked on; the others are looked at.
      if (infos === undefined && hasLock(run)) continue;
      const info = infos?.get(lockKeyOf(this.host.namespace, run));
      const worked = isWorkedOn(run, info);
      if (worked) lines.runs(run);
      if (task === undefined || worked || lines.takes(found)) continue;
      const stored = await this.alarmed(found);
      if (this.isFull || this.adopted.has(nameOf(stored.run))) continue;
      const stray = run.state === 'running' ? active.strayOf(run) : undefined;
      if (stray === undefined) this.adopt(stored, task);
      else if (this.strays.isGivenUp(stray, run, task, info?.held === true))
        this.adopting(nameOf(run), endStray(this.host, stored, task, stray));
    }
  }

  /** It goes on with no more; what waits is looked at all the same, for somebody has to tell of it. */
  private get isFull(): boolean {
    return this.adopted.size >= MAX_ADOPTED;
  }

  private adopt(stored: StoredRun, task: TaskDefinition): void {
    const compensates = stored.run.state === 'failed';
    const done = compensates ? this.engine.compensate(stored, task) : this.engine.adopt(stored, task);
    this.adopting(nameOf(stored.run), done);
  }

  private adopting(name: string, done: Promise<unknown>): void {
    this.adopted.add(name);
    void done.finally(() => this.adopted.delete(name));
  }

  /** Goes on with the occurrences that wait for the lock of their task: one line for each task. */
  private async serve(lines: Lines): Promise<void> {
    for (const [name, line] of lines.sorted()) {
      const task = this.host.tasks.get(name);
      const [first, ...rest] = line;
      if (task === undefined || first === undefined || this.ended) continue;
      const isStuck = this.heads.isStuck(first.run, lines.isBusy(name));
      const head = isStuck ? await this.alarmed(first) : first;
      const lineName = joinParts([name]);
      if (this.isFull || this.adopted.has(lineName)) continue;
      const { isCut } = lines;
      this.adopting(lineName, goThrough(this.host, this.engine, { line: [head, ...rest], task, isCut }));
    }
    this.heads.keep(lines);
  }

  /** Only runs that somebody may be working on have a lock to look at. */
  private async locksOf(runs: readonly StoredRun[]): Promise<ReadonlyMap<string, LockInfo> | undefined> {
    const worked = runs.filter(({ run }) => hasLock(run));
    const keys = [...new Set(worked.map(({ run }) => lockKeyOf(this.host.namespace, run)))];
    return inspectAll(this.host.locks, keys).catch((error: unknown) => {
      // An alarm needs no lock: the sweep goes on without what the locks would say.
      if (!this.ended) emit(this.host, 'error', { error, during: 'a sweep' });
      return undefined;
    });
  }

  private isForeign(run: RunRecord): boolean {
    return run.state === 'running' && run.lock.backend !== this.host.locks.backendName;
  }

  /**
   * Runs under the locks of another backend: from here nobody can tell whether somebody works on them. Those whose
   * node is not announced any more wait for a person.
   */
  private async holdForeign(runs: readonly StoredRun[]): Promise<void> {
    if (runs.length === 0) return;
    const { book, namespace } = this.host;
    const nodes = await book.asked((store) => store.nodes(namespace));
    const live = new Set(nodes.map(({ id }) => id));
    for (const stored of runs) {
      if (stored.run.state !== 'running' || live.has(stored.run.node.id)) continue;
      const moved = await book.move(stored, { type: 'hold', reason: 'other-backend' });
      if (moved.status === 'moved') tellEnd(this.host, moved.stored.run);
    }
  }

  /** One node tells of each run that is overdue: the one whose mark is written. */
  private async alarmed(stored: StoredRun): Promise<StoredRun> {
    const { run } = stored;
    const beforeMs = this.host.time.estimate() - OVERDUE_SWEEPS * this.host.sweepIntervalMs;
    if (run.state !== 'pending' || run.alarmed || run.availableAtMs > beforeMs) return stored;
    const moved = await this.host.book.move(stored, { type: 'alarm' });
    if (moved.status === 'moved') emit(this.host, 'alarm', { run: moved.stored.run, reason: 'overdue' });
    return moved.stored ?? stored;
  }

  private async prune(): Promise<void> {
    const { clock, time, book, namespace } = this.host;
    const nowMonoMs = clock.now().monoMs;
    if (nowMonoMs - this.prunedAtMonoMs < PRUNE_EVERY_MS) return;
    this.prunedAtMonoMs = nowMonoMs;
    const nowMs = await time.now();
    const query = {
      recordsBeforeMs: nowMs - this.retain.recordsMs,
      keysBeforeMs: nowMs - this.retain.keysMs,
      limit: PRUNE_LIMIT,
    };
    await book.asked((store) => store.prune(namespace, query));
  }
}

function hasLock(run: RunRecord): boolean {
  return 'lock' in run && run.lock !== undefined;
}

/** Whether the lock of a record is held by the grant that the record names, or nobody can tell. */
function isWorkedOn(run: RunRecord, info: LockInfo | undefined): boolean {
  if (!('lock' in run) || run.lock === undefined) return false;
  if (run.lock.token === NO_TOKEN) return true;
  return info?.held === true && info.token <= BigInt(run.lock.token);
}

function nameOf(run: RunRecord): string {
  return joinParts([run.task, run.key]);
}
