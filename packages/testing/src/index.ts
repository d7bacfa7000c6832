/**
 * The public surface of `@guard/testing`, written by hand: nothing is exported by accident.
 */
// time and chance in a test's hand
export { VirtualClock } from './clock/virtual-clock.js';
export type { PendingTimers, VirtualClockOptions } from './clock/virtual-clock.js';
export { SeededRandom } from './clock/seeded-random.js';

// faults between a guard and its backends
export { FaultPlan, PlayedFaultError } from './fault/fault.js';
export type { Delay, Fault, FaultScope } from './fault/fault-kinds.js';
export type { PlayedFault, Request, Traffic } from './fault/fault.js';
export { faultyBackend } from './fault/faulty-backend.js';
export type { FaultyBackend, FaultyBackendOptions, LockVerb, NoticeFault } from './fault/faulty-backend.js';
export { faultyState } from './fault/faulty-state.js';
export type { FaultyState, StateVerb } from './fault/faulty-state.js';

// faults on the wire
export { startTcpProxy } from './fault/tcp-proxy.js';
export type { TcpProxy, TcpProxyOptions } from './fault/tcp-proxy.js';
export type { AwaitedLoss, LossOptions } from './fault/tcp-losses.js';
export type { Direction, LossOutcome, TcpAddress } from './fault/tcp-connection.js';

// laws that every scenario obeys
export { findOverlaps, findTokenDisorder, HoldLog } from './check/hold-log.js';
export type { HoldEvent } from './check/hold-log.js';
export { failureOf, reasons, until } from './check/awaiting.js';
export { everydayUse } from './check/everyday.js';
export { findLeftovers } from './check/leftovers.js';
export type { LeftoverQuery } from './check/leftovers.js';
export { everythingSaid, everythingTold, secretsIn } from './check/secrets.js';

// processes that are stopped, killed and given another time of day
export { startWorker } from './process/worker-process.js';
export type { ProcessEnd, WorkerProcess } from './process/worker-process.js';
export type { WorkerOptions } from './process/worker-start.js';
export type { WorkerMain, WorkerScope } from './process/worker-scope.js';
export { SharedHoldLog } from './process/shared-hold-log.js';

// a cluster in one process, played from a seed
export { simulate } from './simulator/simulate.js';
export type { SimulateOptions, SimulationResult } from './simulator/simulate.js';
export type { PlanOptions, SimulatedFault } from './simulator/plan.js';
export type { SimulatedCore } from './simulator/stage.js';
export type { Violation, WatchedPromise } from './simulator/journal.js';

// contract suites
export { describeLockBackend } from './contract/describe-lock-backend.js';
export type { LockBackendSuite } from './contract/describe-lock-backend.js';
export { describeRunStore } from './contract/describe-run-store.js';
export type { RunStoreSuite } from './contract/describe-run-store.js';
export { describeStateStore } from './contract/describe-state-store.js';
export type { StateStoreSuite } from './contract/describe-state-store.js';
export type { StatePlace, StateTraits } from './contract/state/kit.js';
export type { LockPlace } from './contract/locks/kit.js';
export type { RunPlace, RunTraits } from './contract/runs/kit.js';
export type { Profile, SuiteOptions, TestRunner } from './contract/runner.js';
export { sideBySide } from './contract/side-by-side.js';
export type { SideBySideOptions } from './contract/side-by-side.js';
