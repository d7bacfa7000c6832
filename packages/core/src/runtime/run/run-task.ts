/**
 * A wish for a run, checked and in milliseconds, and the tasks that this node can run again by itself. Whatever
 * reaches the engine has this shape, wherever it came from: a call, a decorated method, or the sweep.
 */
import type { Codec, Run } from '../../api/run.js';
import type { CrashPolicy, OnCrash } from '../../machine/run-move.js';
import type { RetryPauses } from '../../machine/run-retry.js';
import type { Calendar } from '../../machine/calendar.js';
import type { RunTrigger } from '../../machine/run-record.js';
import type { Schedule } from '../../machine/schedule.js';
import { GuardError } from '../../value/error.js';

/** The settings of a run; every default is filled in. */
export interface RunPolicy {
  readonly windowMs: number | undefined;
  readonly waitMs: number;
  readonly ttlMs: number;
  readonly attempts: number;
  readonly pauses: RetryPauses;
  readonly timeoutMs: number | undefined;
  readonly stallAfterMs: number | undefined;
  readonly onCrash: OnCrash;
  readonly maxTakeovers: number;
  readonly ifFailed: 'keep' | 'rerun' | undefined;
  readonly onDuplicate: 'skip' | 'result' | 'throw';
  readonly onUnavailable: 'throw' | 'skip' | 'run-unguarded';
  readonly startingDeadlineMs: number | undefined;
  readonly settleTimeoutMs: number;
  readonly letGoAfterMs: number;
  readonly codec: Codec;
}

/** What a run does. */
export interface RunWork {
  readonly work: (run: Run) => unknown;
  readonly compensate?: ((run: Run) => unknown) | undefined;
}

/** One wish for a run. */
export interface Wish extends RunWork {
  readonly task: string;
  readonly policy: RunPolicy;
  /** A caller's key. Without one the key is a window's start, or random. */
  readonly key?: string | undefined;
  /** The run is an occurrence of this series: the one that the call stands for by this node's clock. */
  readonly calendar?: Calendar | undefined;
  /** Default: `call`. */
  readonly trigger?: RunTrigger;
  /** JSON text. */
  readonly input?: string | undefined;
}

/** When a task is due by itself. */
export interface TaskSchedule extends Schedule {
  /** Without a success for so long, one node raises the alarm. */
  readonly alarmAfterMs: number | undefined;
}

/** A task that this node can run again by itself. */
export interface TaskDefinition {
  readonly name: string;
  readonly schedule?: TaskSchedule | undefined;
  readonly policy: RunPolicy;
  /** What to do for a record with this input (JSON text). */
  workFor(input: string | undefined): RunWork;
}

/** The crash policy of a wish or a task. */
export function crashPolicy(policy: RunPolicy, compensate: boolean): CrashPolicy {
  const { onCrash, maxTakeovers } = policy;
  return { onCrash, maxTakeovers, compensate };
}

/** The registered tasks of one guard. */
export class TaskRegistry {
  private readonly tasks = new Map<string, TaskDefinition>();
  /** Told of every task that is registered from now on. */
  onAdd: ((definition: TaskDefinition) => void) | undefined;

  /** @throws GuardError `invalid-argument`: another task has this name. */
  add(definition: TaskDefinition): void {
    const { name } = definition;
    if (this.tasks.has(name)) {
      throw new GuardError(
        'invalid-argument',
        `there is a task '${name}' already: give each task a name of its own`,
      );
    }
    this.tasks.set(name, definition);
    this.onAdd?.(definition);
  }

  get(name: string): TaskDefinition | undefined {
    return this.tasks.get(name);
  }

  names(): readonly string[] {
    return [...this.tasks.keys()];
  }
}
