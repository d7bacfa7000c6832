/** What a guard is made of, and every default (DESIGN section 16 in code). */
import type { Clock, Policy, Random } from '../port/clock.js';
import type { LockBackend } from '../port/lock-backend.js';
import type { RunStore } from '../port/run-store.js';
import type { StateStore } from '../port/state-store.js';
import type { Duration } from '../value/duration.js';

/** Options of `createGuard`. */
export interface GuardOptions {
  /** Where locks are kept. */
  readonly locks: LockBackend;
  /** Where state is kept. Default: none; `guard.state` then throws `invalid-argument`. */
  readonly state?: StateStore;
  /** Where runs are kept. Default: `kvRuns(state)` where there is a state store; else `guard.run` throws. */
  readonly runs?: RunStore;
  /** Separates applications on one backend: at most 64 bytes, without a slash. Default `'default'`. */
  readonly namespace?: string;
  /** The node's label for people; its identity is random and new at every start. Default: the host's name. */
  readonly node?: { readonly label?: string };
  readonly defaults?: {
    /** Default `'30s'`. */
    readonly ttl?: Duration;
    /** Default `'30s'`. */
    readonly wait?: Duration;
  };
  /** How often a started node looks for orphans and due retries. Default `'10s'`, ± 20 %. */
  readonly sweepInterval?: Duration;
  /** How long `close()` lets running work go on. Default `'20s'`. */
  readonly grace?: Duration;
  readonly retain?: {
    /** How long finished runs keep their history. Default `'30d'`. */
    readonly runs?: Duration;
    /** How long their keys stay taken. Default `'90d'`; at least `runs`. */
    readonly keys?: Duration;
  };
  /** What a task does when the lock backend cannot be asked. Default `'throw'`. */
  readonly onUnavailable?: 'throw' | 'skip';
  /** Runs acquires, reads and writes. Default: a circuit breaker per backend. Never sees renewals and releases. */
  readonly policy?: Policy;
  /** Default: the system's clocks. */
  readonly clock?: Clock;
  /** Default: the system's cryptographic source for ids. */
  readonly random?: Random;
}
