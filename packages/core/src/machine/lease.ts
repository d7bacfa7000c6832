/**
 * The life of a lease, from the grant to release or loss, as a pure function. The backend's answers can come late or
 * never, so what decides is the local trust deadline, counted from *before* the request was sent that granted or
 * renewed the lease (S1). A renewal moves the deadline, and nothing ever moves it back (S5).
 */
import { elapsed, type Instant } from '../value/instant.js';

/** How far a lease is trusted: for `trustMs` from `sentAt`, on both clocks. */
export interface Trust {
  /** Read before the request was sent. */
  readonly sentAt: Instant;
  /** The ttl less the margin. */
  readonly trustMs: number;
}

/** Where a lease stands, each state with only its own data. */
export type LeaseState =
  | { readonly phase: 'held'; readonly trust: Trust }
  /** Only the wall clock says that the deadline passed. The verdict is a renewal sent from now on. */
  | {
      readonly phase: 'suspect';
      readonly trust: Trust;
      readonly since: Instant;
      readonly verdictByMonoMs: number;
    }
  /** A release is on its way; renewals do not matter any more. */
  | {
      readonly phase: 'releasing';
      readonly trust: Trust;
      readonly sentInTime: boolean;
      readonly sends: number;
    }
  | { readonly phase: 'released'; readonly result: 'released' | 'lost' | 'unknown' }
  | { readonly phase: 'lost'; readonly reason: LossReason };

/** Why a lease was lost, in words for people. */
export type LossReason =
  | 'the trust deadline passed'
  | 'the backend says that the claim does not hold the lock'
  | 'the wall clock passed the deadline and no renewal settled it in time'
  | 'the guard was closed'
  | 'the lock was let go';

/** What can happen to a lease. Every event says when it happened. */
export type LeaseEvent =
  /** Time went by: the deadline timer, or any call that looks at the lock. */
  | { readonly type: 'looked'; readonly now: Instant; readonly suspectMs: number }
  /** A renewal (or an extension) was answered `renewed`. */
  | { readonly type: 'renewed'; readonly now: Instant; readonly trust: Trust; readonly suspectMs: number }
  /** The backend said `lost`, in an answer or a notice. */
  | { readonly type: 'refused' }
  /** A release is being sent: the first time or again. */
  | { readonly type: 'release-sent'; readonly now: Instant }
  | { readonly type: 'release-answered'; readonly answer: 'released' | 'lost' }
  /** The lease is over and the backend could not be asked. */
  | { readonly type: 'release-given-up' }
  /** The holder ends it by itself. */
  | { readonly type: 'dropped'; readonly reason: LossReason };

/** What the runtime has to do. */
export type LeaseEffect = 'tell-lost' | 'tell-suspect' | 'renew-now' | 'none';

/** A state and what follows from it. */
export interface LeaseStep {
  readonly state: LeaseState;
  readonly effect: LeaseEffect;
}

/** The first state of a granted claim. */
export function granted(trust: Trust): LeaseState {
  return { phase: 'held', trust };
}

/** Whether the holder may act, now. */
export function mayAct(state: LeaseState, now: Instant): boolean {
  return state.phase === 'held' && elapsed(state.trust.sentAt, now, state.trust.trustMs) === 'before';
}

/** Milliseconds until the first of the two clocks reaches the deadline; 0 where the lock is not held. */
export function remainingMs(state: LeaseState, now: Instant): number {
  if (state.phase !== 'held') return 0;
  const { sentAt, trustMs } = state.trust;
  return Math.max(0, trustMs - Math.max(now.monoMs - sentAt.monoMs, now.wallMs - sentAt.wallMs));
}

/** Whether the lease goes on: held, or suspect and waiting for its verdict. */
export function isHolding(
  state: LeaseState,
): state is Extract<LeaseState, { trust: Trust }> & { phase: 'held' | 'suspect' } {
  return state.phase === 'held' || state.phase === 'suspect';
}

/** The life of a lease: one exhaustive switch. */
export function leaseStep(state: LeaseState, event: LeaseEvent): LeaseStep {
  switch (event.type) {
    case 'looked':
      return looked(state, event.now, event.suspectMs);
    case 'renewed':
      return renewed(looked(state, event.now, event.suspectMs), event.trust);
    case 'refused':
      return isHolding(state) ? lost('the backend says that the claim does not hold the lock') : stay(state);
    case 'dropped':
      return isHolding(state) ? lost(event.reason) : stay(state);
    case 'release-sent':
      return stay(releaseSent(state, event.now));
    case 'release-answered':
      return stay(releaseAnswered(state, event.answer));
    case 'release-given-up':
      return stay(state.phase === 'releasing' ? { phase: 'released', result: 'unknown' } : state);
  }
}

function looked(state: LeaseState, now: Instant, suspectMs: number): LeaseStep {
  if (state.phase === 'suspect') {
    return now.monoMs < state.verdictByMonoMs
      ? stay(state)
      : lost('the wall clock passed the deadline and no renewal settled it in time');
  }
  if (state.phase !== 'held') return stay(state);
  switch (elapsed(state.trust.sentAt, now, state.trust.trustMs)) {
    case 'before':
      return stay(state);
    case 'past':
      return lost('the trust deadline passed');
    case 'doubtful':
      return { state: suspected(state.trust, now, suspectMs), effect: 'tell-suspect' };
  }
}

/** The monotonic clock is the last word: where it passes the deadline too, nothing is in doubt any more (L1). */
function suspected(trust: Trust, since: Instant, suspectMs: number): LeaseState {
  const deadlineMonoMs = trust.sentAt.monoMs + trust.trustMs;
  return {
    phase: 'suspect',
    trust,
    since,
    verdictByMonoMs: Math.min(since.monoMs + suspectMs, deadlineMonoMs),
  };
}

function renewed(step: LeaseStep, trust: Trust): LeaseStep {
  const { state } = step;
  if (state.phase === 'held')
    return { state: { phase: 'held', trust: later(state.trust, trust) }, effect: step.effect };
  // Only a renewal that was sent after the suspicion proves that the lease outlived whatever stopped the clocks.
  const settles = state.phase === 'suspect' && trust.sentAt.monoMs >= state.since.monoMs;
  return settles && step.effect === 'none' ? stay({ phase: 'held', trust }) : step;
}

function later(a: Trust, b: Trust): Trust {
  return b.sentAt.monoMs + b.trustMs > a.sentAt.monoMs + a.trustMs ? b : a;
}

function releaseSent(state: LeaseState, now: Instant): LeaseState {
  if (state.phase === 'releasing') return { ...state, sends: state.sends + 1 };
  if (!isHolding(state)) return state;
  const sentInTime = elapsed(state.trust.sentAt, now, state.trust.trustMs) === 'before';
  return { phase: 'releasing', trust: state.trust, sentInTime, sends: 1 };
}

function releaseAnswered(state: LeaseState, answer: 'released' | 'lost'): LeaseState {
  if (state.phase !== 'releasing') return state;
  if (answer === 'released') return { phase: 'released', result: 'released' };
  if (state.sends === 1) return { phase: 'released', result: 'lost' };
  // An earlier sending may have done it: certain only if nobody else could have come in between.
  return { phase: 'released', result: state.sentInTime ? 'released' : 'unknown' };
}

function lost(reason: LossReason): LeaseStep {
  return { state: { phase: 'lost', reason }, effect: 'tell-lost' };
}

function stay(state: LeaseState): LeaseStep {
  return { state, effect: 'none' };
}
