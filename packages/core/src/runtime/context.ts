/**
 * What the current asynchronous context holds: locks and the run that the code is under. One storage for the whole
 * process, found through a global symbol, because an application can load this package twice (ESM beside CommonJS)
 * and code under a lock of one copy must see it from the other.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { GuardError } from '../value/error.js';
import type { HeldLock } from './lock/lock-service.js';

/** One level of nesting. A frame outlives its lock where work was started and not awaited: ask the lock itself. */
export interface Frame {
  readonly lock?: HeldLock;
  /** The lock backend that the lock is of, by identity: the same key on another backend is another lock. */
  readonly backend?: object;
  /** The run that the code is in; the run engine owns its shape. */
  readonly run?: object;
  readonly parent: Frame | undefined;
}

/** What all copies of this package in one process share. */
export interface ProcessState {
  readonly version: 1;
  readonly frames: AsyncLocalStorage<Frame>;
  /** The guard that decorated methods use when nothing nearer is bound; set by `setDefaultGuard`. */
  defaultGuard: object | undefined;
  /** Guards bound to instances by `bindGuard`. */
  readonly bound: WeakMap<object, object>;
}

const SYMBOL = Symbol.for('@guard/core@1');

/** The state that every copy of this package in the process shares. */
export const processState: ProcessState = shared();

/** The innermost frame, or `undefined` outside of every lock and run. */
export function currentFrame(): Frame | undefined {
  return processState.frames.getStore();
}

/** Runs `work` inside `frame`. */
export function runInFrame<A extends unknown[], T>(frame: Frame, work: (...given: A) => T, ...given: A): T {
  return processState.frames.run(frame, work, ...given);
}

/** Runs `work` as if nothing were around it: for loops that go on after whoever started them. */
export function runOutside<T>(work: () => T): T {
  return processState.frames.exit(work);
}

/** The innermost lock of this context that is still held; `undefined` outside, or when it was lost or released. */
export function currentLock(): HeldLock | undefined {
  for (let frame = currentFrame(); frame !== undefined; frame = frame.parent) {
    if (frame.lock?.isHeld()) return frame.lock;
  }
  return undefined;
}

/** Whether code in this frame is under the very lock that it asks for: waiting for it would never end. */
export function holdsInFrame(innermost: Frame | undefined, backend: object, fullKey: string): boolean {
  for (let frame = innermost; frame !== undefined; frame = frame.parent) {
    if (frame.lock?.fullKey === fullKey && frame.backend === backend && frame.lock.isHeld()) return true;
  }
  return false;
}

function shared(): ProcessState {
  const holder = globalThis as { [SYMBOL]?: ProcessState };
  const state = (holder[SYMBOL] ??= {
    version: 1,
    frames: new AsyncLocalStorage<Frame>(),
    defaultGuard: undefined,
    bound: new WeakMap<object, object>(),
  });
  if (state.version !== 1)
    throw new GuardError('invalid-argument', `two copies of @guard/core do not fit each other`);
  return state;
}
