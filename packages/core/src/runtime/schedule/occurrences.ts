/**
 * From a plan to records and runs. One occurrence that is due goes the way of every call, and can be skipped because
 * another run overlaps. Several at once are a backlog: their records come first, so that any node may help, and this
 * node goes through them one after another.
 */
import { occurrenceKey, type PassedSummary, type Planned, summaryKey } from '../../machine/task-record.js';
import type { StoredRun } from '../../machine/run-record.js';
import { ON_TIME_MS } from '../../machine/schedule.js';
import { GuardError } from '../../value/error.js';
import { elapsed, type Instant } from '../../value/instant.js';
import { lockKeyOf } from '../run/active-runs.js';
import type { RunEngine } from '../run/run-engine.js';
import type { Entry } from '../run/run-entry-terms.js';
import { emit, type RunHost } from '../run/run-host.js';
import type { TaskDefinition } from '../run/run-task.js';
import { goThrough, withWaiting } from '../run/sweep-lines.js';

/** A node that stood still for so long after it planned something leaves it to the others. */
const STALE_PLAN_MS = 60_000;
/** Instants that are remembered as having a record. */
const MAX_REMEMBERED = 2_000;
const QUIET = new Set(['running', 'completed', 'pending', 'expired', 'skipped', 'failed', 'on-hold']);

/** Writes the record of instants that were passed over; told by the node that wrote it. */
export async function passOver(host: RunHost, task: string, summary: PassedSummary): Promise<void> {
  const { fromMs, toMs, count, atLeast, reason, causes, told } = summary;
  if (told) return;
  const run = { task, key: summaryKey(fromMs), id: host.random.id(), trigger: 'cron' } as const;
  const counted = {
    ...{ count, fromMs, toMs },
    ...(atLeast ? { atLeast } : {}),
    ...(causes === undefined ? {} : { causes }),
  };
  const answer = await host.book.create({ type: 'create', run, passed: { reason, summary: counted } });
  if (answer.created) emit(host, 'run-expired', { run: answer.stored.run });
}

/** The occurrences of one task, as this node begins them. */
export class Occurrences {
  private readonly known = new Set<number>();
  private readonly entering = new Set<number>();

  /** `offsetMs` later than its instant an occurrence is due. */
  constructor(
    private readonly host: RunHost,
    private readonly engine: RunEngine,
    private readonly task: TaskDefinition,
    private readonly offsetMs: number,
  ) {}

  /** Whether an instant is known to have its record. */
  readonly recorded = (instantMs: number): boolean => this.known.has(instantMs);

  /** Whether this node is about to make its record. */
  isEntering(instantMs: number): boolean {
    return this.entering.has(instantMs);
  }

  /**
   * Begins what was planned at `plannedAt`, oldest first. What cannot be begun here is begun elsewhere. `asBacklog`:
   * more is planned in the next moment, and what is begun now is not in its way; or nothing may begin here for now.
   */
  async begin(runs: readonly Planned[], plannedAt: Instant, asBacklog = false): Promise<void> {
    const { host } = this;
    const gone = elapsed(plannedAt, host.clock.now(), STALE_PLAN_MS) !== 'before';
    if (gone || host.stopSignal.aborted) return;
    const [only] = runs;
    if (only !== undefined && runs.length === 1 && !asBacklog && !this.isTooLate(only))
      return this.enter(only);
    await this.backlog(runs);
    const { active, namespace } = host;
    const { name: task } = this.task;
    if (!active.hasStray(lockKeyOf(namespace, { task, key: '' }))) return;
    for (const { instantMs } of runs)
      emit(host, 'run-skipped', { task, key: occurrenceKey(instantMs), reason: 'busy' });
  }

  /** Makes the records of instants, and goes through them and whatever waits since before. */
  async backlog(runs: readonly Planned[]): Promise<void> {
    const created: StoredRun[] = [];
    for (const planned of runs) {
      const answer = await this.host.book.create({
        type: 'create',
        run: this.runOf(planned),
        availableAtMs: planned.instantMs + this.offsetMs,
      });
      this.remember(planned.instantMs);
      if (answer.created) created.push(answer.stored);
      this.tellTaken(answer.stored);
    }
    const { host, engine, task } = this;
    if (created.length > 0) void goThrough(host, engine, await withWaiting(host, task, created));
  }

  private enter(planned: Planned): void {
    const { host, task, engine } = this;
    const { instantMs } = planned;
    const run = this.runOf(planned);
    const { policy } = task;
    const availableAtMs = instantMs + this.offsetMs;
    const { waitMs, startingDeadlineMs = Infinity } = policy;
    // Later than that its lock was not to be had: whoever finds it waiting lets `catchUp` decide.
    const isMadeUpFor = this.task.schedule?.catchUp.mode !== 'none';
    const fromMs = isMadeUpFor ? Math.max(availableAtMs, this.host.time.estimate()) : availableAtMs;
    const beginUntilMs = Math.min(fromMs + ON_TIME_MS + waitMs, availableAtMs + startingDeadlineMs);
    const terms = { run, policy, waitMs, canGoOn: true, availableAtMs, beginUntilMs };
    this.entering.add(instantMs);
    const begun = engine.begin(terms, task, (entry) => {
      this.entering.delete(instantMs);
      if (entry.stored !== undefined) {
        this.remember(instantMs);
        this.tellTaken(entry.stored);
      }
      if (entry.entered || (QUIET.has(entry.reason) && !this.leavesIt(entry))) return;
      const reason = entry.reason === 'pending' ? 'busy' : entry.reason;
      emit(host, 'run-skipped', { task: task.name, key: run.key, reason });
    });
    void begun.finally(() => this.entering.delete(instantMs));
  }

  /** It waits for another node, because earlier work of the task has not settled on this one. */
  private leavesIt(entry: Entry): boolean {
    const { active, namespace } = this.host;
    return entry.stored?.run.state === 'pending' && active.hasStray(lockKeyOf(namespace, entry.stored.run));
  }

  /** Past its deadline it is not begun: its record says so. */
  private isTooLate({ instantMs }: Planned): boolean {
    const { startingDeadlineMs } = this.task.policy;
    if (startingDeadlineMs === undefined) return false;
    return this.host.time.estimate() - instantMs - this.offsetMs > startingDeadlineMs;
  }

  /** Somebody who does not know the schedule used an instant as the key of a call: it is taken, and never runs. */
  private tellTaken({ run: { key, keyed } }: StoredRun): void {
    if (keyed !== true) return;
    const error = new GuardError('run-skipped', `instant ${key} is taken by a call with this key`, { key });
    emit(this.host, 'error', { error, during: `the schedule of ${this.task.name}` });
  }

  private runOf({ instantMs, trigger }: Planned) {
    const { name: task } = this.task;
    const key = occurrenceKey(instantMs);
    return { task, key, id: this.host.random.id(), trigger, scheduledForMs: instantMs };
  }

  /** Nothing is to be done for this instant any more. */
  remember(instantMs: number): void {
    this.known.add(instantMs);
    if (this.known.size <= MAX_REMEMBERED) return;
    for (const oldest of this.known) {
      this.known.delete(oldest);
      return;
    }
  }
}
