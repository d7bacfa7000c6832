/**
 * Work that did not settle after its time-out and was left to itself, seen from the node on which it goes on. Its lease
 * runs out, and another node goes on with the run. Where none does, because it hangs there too or there is no other,
 * nobody would ever tell: so this node, which must not begin it again, brings the record to an end by what it knows.
 */
import type { RunRecord, StoredRun } from '../../machine/run-record.js';
import { afterCrash } from '../../machine/run.js';
import type { Clock } from '../../port/clock.js';
import type { ActiveRun } from './active-run.js';
import { claimOf } from './run-claim.js';
import { emit, type RunHost, tellEnd, workerUnder } from './run-host.js';
import { crashPolicy, type TaskDefinition } from './run-task.js';
import { faultOf } from './run-values.js';

/** Since when the locks of strays are free. */
export class Strays {
  private readonly freeSince = new WeakMap<ActiveRun, number>();

  /** For so long the other nodes have the chance to go on with it. */
  constructor(
    private readonly clock: Clock,
    private readonly patienceMs: number,
  ) {}

  /** Whether nobody is to be waited for any longer; asked once in every sweep. `isHeld`: by whomever. */
  isGivenUp(stray: ActiveRun, run: RunRecord, { policy }: TaskDefinition, isHeld: boolean): boolean {
    // Without a limit the work may take as long as it likes, and its result counts as long as nobody goes on with it.
    if (!stray.isLetGo) return false;
    const { monoMs } = this.clock.now();
    if (isHeld) {
      this.freeSince.delete(stray);
      return false;
    }
    const sinceMs = this.freeSince.get(stray) ?? monoMs;
    this.freeSince.set(stray, sinceMs);
    // No node would begin it again: there is nobody to wait for.
    if (afterCrash(run, policy) !== 'retry') return true;
    return monoMs - sinceMs >= this.patienceMs;
  }
}

/** Writes the end of a run whose work goes on here as a stray. Never rejects: a sweep that finds it again goes on. */
export async function endStray(
  host: RunHost,
  stored: StoredRun,
  task: TaskDefinition,
  stray: ActiveRun,
): Promise<void> {
  await ended(host, stored, task, stray).catch((error: unknown) => {
    emit(host, 'error', { error, during: `run ${stored.run.key} of ${task.name}` });
  });
}

async function ended(
  host: RunHost,
  stored: StoredRun,
  task: TaskDefinition,
  stray: ActiveRun,
): Promise<void> {
  const { run } = stored;
  const { book, sweepIntervalMs: waitMs } = host;
  const outcome = await claimOf(host, { run, policy: task.policy, waitMs });
  if (outcome.status !== 'granted') return;
  const { lock } = outcome;
  try {
    const by = workerUnder(host, lock.fullKey, lock);
    const error = stray.cutReason;
    const policy = crashPolicy(task.policy, task.workFor(run.input).compensate !== undefined);
    const crash = { type: 'crash', by, fault: faultOf(error), policy } as const;
    // No node goes on with it: a person has to look.
    const held = { policy: { ...policy, onCrash: 'hold' }, heldAs: 'unsettled' } as const;
    const move = afterCrash(run, policy) === 'retry' ? { ...crash, ...held } : crash;
    const moved = await book.move(stored, move);
    if (moved.status === 'moved') tellEnd(host, moved.stored.run, error);
  } finally {
    await lock.release();
  }
}
