/**
 * The public surface of `@guard/core`, written by hand: nothing is exported by accident.
 */
// errors, durations, keys
export { GuardError, invalidArgument } from './value/error.js';
export type { GuardErrorCode, GuardErrorDetails } from './value/error.js';
export { checkOptions } from './value/options.js';
export { parseDuration, marginMs, MAX_DURATION_MS } from './value/duration.js';
export type { Duration, DurationRules } from './value/duration.js';
export { fingerprint, MAX_KEY_BYTES, MAX_FULL_KEY_BYTES, MAX_NAMESPACE_BYTES } from './value/key.js';
export type { Key } from './value/key.js';
export { nextToken, compareText } from './value/token.js';
export type { Instant } from './value/instant.js';

// ports: what adapters implement
export type { Clock, Timer, TimerOptions, Random, Policy } from './port/clock.js';
export type {
  AtOnce,
  Claim,
  ClaimAnswer,
  Failed,
  Granted,
  Holder,
  LeaseRef,
  LockBackend,
  LockInfo,
  LockQuery,
  LockTraits,
  Notice,
  Release,
  ReleaseAnswer,
  Renewal,
  RenewAnswer,
  Subscription,
} from './port/lock-backend.js';
export { FENCE_KEPT_MS, MAX_VALUE_BYTES } from './port/state-store.js';
export type {
  Fence,
  StateChange,
  StatePage,
  StateStore,
  StateWrite,
  StoredEntry,
  WriteAnswer,
} from './port/state-store.js';
export type {
  CreateAnswer,
  DueQuery,
  NodeRecord,
  PruneQuery,
  RunPage,
  RunQuery,
  RunRef,
  RunStore,
  StoredTask,
  TaskRecord,
  TransitionAnswer,
} from './port/run-store.js';
export type {
  Compensation,
  RunBase,
  RunEvent,
  RunFault,
  RunLock,
  RunNode,
  RunRecord,
  RunStatus,
  RunSummary,
  RunTrigger,
  StoredRun,
} from './machine/run-record.js';
export type { Absence, MissedCause } from './machine/absence.js';
export type {
  EarlierDefinition,
  PassedOver,
  PassedSummary,
  PauseGap,
  Planned,
} from './machine/task-record.js';
// adapters that need nothing but this process
export { memoryLocks } from './memory/locks.js';
export type { MemoryLocksOptions } from './memory/locks.js';
export { memoryState } from './memory/state.js';
export type { MemoryStateOptions } from './memory/state.js';

// a run store on any state store
export { kvRuns } from './kv/runs.js';
export type { KvRunsOptions } from './kv/runs.js';
// for adapters: from a store's messages to the listener of a watch
export { StateFeed } from './kv/state-feed.js';
export type { StateFeedParts } from './kv/state-feed.js';
export { systemClock } from './runtime/clock.js';
export { systemRandom } from './runtime/random.js';

// the guard
export { createGuard } from './facade/guard.js';
export type { Guard } from './api/guard.js';
export type { GuardHealth } from './api/health.js';
export type { GuardOptions } from './api/options.js';
export type {
  AcquireOptions,
  Lock,
  LockApi,
  LockSet,
  LockStatus,
  ReleaseResult,
  TryOptions,
} from './api/lock.js';
export type { Entry, ListedEntry, StateApi, Watch, WatchedChange, WriteOptions } from './api/state.js';
export { EVENT_NAMES } from './runtime/events.js';
export type { GuardEvents, GuardListener } from './api/event.js';
export { currentLock } from './facade/current-lock.js';

// single runs
export { activeRun, currentRun } from './runtime/run/current-run.js';
export { MAX_RECORDED_BYTES } from './api/run.js';
export type { CompletableRun } from './runtime/run/active-run.js';
export type { CreatableRuns, PreparedCreate, PreparedWrite } from './runtime/run/run-book.js';
export type {
  Backoff,
  CallOptions,
  Codec,
  CreateRunOptions,
  DecisionOptions,
  Run,
  RunApi,
  RunListOptions,
  RunOptions,
  RunOutcome,
  RunSettings,
  RunsApi,
  RunView,
  SkipReason,
  StartOptions,
  Task,
  TaskOptions,
} from './api/run.js';
export type { CatchUp, ScheduleOptions, Series } from './api/schedule.js';
export type { Backfill, BackfillOptions, Explanation, NextOptions, TasksApi, TaskView } from './api/tasks.js';
export type { LeftAlone } from './machine/run-admission.js';
export type { OnCrash } from './machine/run-move.js';

// decorators
export { SingleRun, singleRun } from './decorator/single-run.js';
export { Locked, locked } from './decorator/locked.js';
export { bindGuard, setDefaultGuard } from './decorator/binding.js';
export type { BindOptions } from './decorator/binding.js';
export { besideOf, problemBeside, scheduleBeside } from './decorator/beside.js';
export type { Beside } from './decorator/beside.js';
export { guardedMethods, nameOf as taskNameOf, reachedBy } from './decorator/registry.js';
export type { SingleRunOptions } from './decorator/single-run-options.js';
export type { LockedOptions } from './decorator/locked.js';
export type { GuardedMethod, GuardSource } from './decorator/registry.js';
export type { AnyArguments, AnyMethod, GuardDecorator, Promising } from './decorator/method.js';
