/** The guard: the object that an application makes once. */
import type { GuardEvents, GuardListener } from './event.js';
import type { GuardHealth } from './health.js';
import type { LockApi } from './lock.js';
import type { RunApi } from './run.js';
import type { StateApi } from './state.js';
import type { TasksApi } from './tasks.js';

/** Locks, state and runs of one application on its backends. */
export interface Guard extends LockApi, RunApi {
  /** Separates applications on one backend. */
  readonly namespace: string;
  /** Versioned state. */
  readonly state: StateApi;
  /** Tasks with a schedule, for people. */
  readonly tasks: TasksApi;
  /** Calls `listener` on every `event` from now on; a listener that throws harms nobody. Returns how to end it. */
  on<E extends keyof GuardEvents>(event: E, listener: GuardListener<E>): () => void;
  /** How this guard is, at once and without asking anybody. */
  health(): GuardHealth;
  /**
   * Ends the guard, once, within its grace and little more (L3): refuses new work, ends waiting claims (`closed`),
   * gives back locks that `acquire` handed out, asks runs to finish (`stopSignal`), lets work under `withLock` and runs
   * go on for the grace, tells what still runs to stop, and gives back what settled. Clients that were handed in stay
   * open.
   */
  close(): Promise<void>;
}
