/**
 * The life of a claim, from the first request to a lock, a "busy" or a fault, as a pure function. Three things can
 * cross each other here: answers, notices of a hand-over, and the caller giving up. Whatever the order, a claim ends
 * exactly once, and a grant that nobody will use is given back (S4).
 */
import { elapsed, type Instant } from '../value/instant.js';
import { marginMs } from '../value/duration.js';
import type { Trust } from './lease.js';

/** What never changes about a claim. */
export interface ClaimPlan {
  /** `false`: one try; not granted means busy. */
  readonly waits: boolean;
  readonly ttlMs: number;
  readonly ticketTtlMs: number;
  /** How long after its start a try may repeat a request that failed. */
  readonly faultBudgetMs: number;
  readonly startedAt: Instant;
}

/** What the backend told last: decides whether a wait that ends was busy or never heard. */
export interface Told {
  readonly failures: number;
  /** The last answer said something; `false`: the last one was a fault, or there was none yet. */
  readonly answered: boolean;
  readonly fault: unknown;
  /** Largest token of a notice that came while no ticket was known yet; 0 for none. */
  readonly noticed: bigint;
}

/** Where a claim stands. */
export type ClaimState =
  /** A request is on its way, or will be sent again after a pause; no ticket is known. */
  | { readonly phase: 'asking'; readonly told: Told }
  /** A ticket stands in the backend's queue. */
  | { readonly phase: 'queued'; readonly told: Told }
  | { readonly phase: 'done' };

type OpenState = Exclude<ClaimState, { phase: 'done' }>;

/** The last answer to a re-sent acquire of any claim of this session on the key. */
export interface QueueView {
  readonly minted: bigint;
  readonly sentAt: Instant;
}

/** What can happen to a claim. */
export type ClaimEvent =
  | { readonly type: 'granted'; readonly token: bigint; readonly sentAt: Instant; readonly now: Instant }
  | { readonly type: 'queued'; readonly view: QueueView; readonly now: Instant }
  | { readonly type: 'busy' }
  | { readonly type: 'cancelled' }
  | { readonly type: 'failed'; readonly cause: unknown; readonly permanent: boolean; readonly now: Instant }
  /** A notice says that the ticket became the holder. `view`: what the queue was when it was last refreshed. */
  | {
      readonly type: 'noticed';
      readonly token: bigint;
      readonly view: QueueView | undefined;
      readonly now: Instant;
    }
  | { readonly type: 'given-up'; readonly reason: GiveUp };

/** Why a caller does not want the lock any more. */
export type GiveUp = 'timeout' | 'aborted' | 'closed';

/** How a claim ended. */
export type ClaimEnd =
  | GrantedEnd
  | { readonly end: 'busy' }
  | { readonly end: 'aborted' }
  | { readonly end: 'closed' }
  | { readonly end: 'fault'; readonly cause: unknown; readonly why: 'failed' | 'no-answer' | 'late' };

/** The claim has the lock. */
export interface GrantedEnd {
  readonly end: 'granted';
  readonly token: bigint;
  readonly trust: Trust;
  readonly handedOver: boolean;
}

/** What the runtime has to do, in this order. */
export interface ClaimStep {
  readonly state: ClaimState;
  /** Take back whatever this claim id has or will have. */
  readonly cancel?: true;
  /** `now`: send the acquire again; `backoff`: after a fault's pause; `poll`: when it is worth asking again. */
  readonly ask?: 'now' | 'backoff' | 'poll';
  /** Ask under a new claim id: the old one is spent. */
  readonly renewId?: true;
  readonly settle?: ClaimEnd;
}

const NOTHING_TOLD: Told = { failures: 0, answered: false, fault: undefined, noticed: 0n };

/** The first state: the first request is being sent. */
export const FIRST_CLAIM_STATE: ClaimState = { phase: 'asking', told: NOTHING_TOLD };

/** The life of a claim: one exhaustive switch. An ended claim gives back whatever still arrives for it. */
export function claimStep(plan: ClaimPlan, state: ClaimState, event: ClaimEvent): ClaimStep {
  if (state.phase === 'done') return { state };
  switch (event.type) {
    case 'granted':
      return answeredGranted(plan, event);
    case 'queued':
      return answeredQueued(plan, state.told, event);
    case 'busy':
      return plan.waits ? { state: asking(heard(state.told)), ask: 'poll' } : end({ end: 'busy' });
    case 'cancelled':
      return spent(plan, 'late');
    case 'failed':
      return failed(plan, state, event);
    case 'noticed':
      return noticed(plan, state, event);
    case 'given-up':
      return givenUp(state.told, event.reason);
  }
}

/** How a claim ends that was granted in the very step that asked for it: nothing can have crossed. */
export function grantedAtOnce(ttlMs: number, token: bigint, sentAt: Instant): GrantedEnd {
  return { end: 'granted', token, trust: { sentAt, trustMs: trustMs(ttlMs) }, handedOver: false };
}

/** How long a lease of this ttl is trusted. */
export function trustMs(ttlMs: number): number {
  return ttlMs - marginMs(ttlMs);
}

function answeredGranted(plan: ClaimPlan, event: ClaimEvent & { type: 'granted' }): ClaimStep {
  const trust = { sentAt: event.sentAt, trustMs: trustMs(plan.ttlMs) };
  if (elapsed(trust.sentAt, event.now, trust.trustMs) !== 'before') return spent(plan, 'late');
  return end({ end: 'granted', token: event.token, trust, handedOver: false });
}

function answeredQueued(plan: ClaimPlan, told: Told, event: ClaimEvent & { type: 'queued' }): ClaimStep {
  const queued: ClaimState = { phase: 'queued', told: heard(told) };
  // The notice of a hand-over can overtake the answer that made the ticket.
  return told.noticed > event.view.minted
    ? believe(plan, queued, { type: 'noticed', token: told.noticed, view: event.view, now: event.now })
    : { state: queued };
}

function noticed(plan: ClaimPlan, state: OpenState, event: ClaimEvent & { type: 'noticed' }): ClaimStep {
  if (state.phase === 'queued' && event.view !== undefined) return believe(plan, state, event);
  const larger = event.token > state.told.noticed ? event.token : state.told.noticed;
  return { state: { ...state, told: { ...state.told, noticed: larger } } };
}

/**
 * A notice is believed only if its token is larger than everything minted when the ticket was last refreshed (else it
 * tells of an older hand-over), and only for as long as a hand-over made right after that refresh would last.
 */
function believe(plan: ClaimPlan, state: ClaimState, event: ClaimEvent & { type: 'noticed' }): ClaimStep {
  const { view, token, now } = event;
  if (view === undefined || token <= view.minted) return { state };
  const trust = { sentAt: view.sentAt, trustMs: trustMs(plan.ticketTtlMs) };
  if (elapsed(trust.sentAt, now, trust.trustMs) !== 'before') return { state, ask: 'now' };
  return end({ end: 'granted', token, trust, handedOver: true });
}

function failed(plan: ClaimPlan, state: OpenState, event: ClaimEvent & { type: 'failed' }): ClaimStep {
  const told = { ...state.told, failures: state.told.failures + 1, answered: false, fault: event.cause };
  const spentBudget = event.now.monoMs - plan.startedAt.monoMs >= plan.faultBudgetMs;
  if (event.permanent || (!plan.waits && spentBudget)) {
    return { ...end({ end: 'fault', cause: event.cause, why: 'failed' }), cancel: true };
  }
  // A ticket is refreshed by the schedule of its key, which also paces the faults.
  return state.phase === 'queued'
    ? { state: { phase: 'queued', told } }
    : { state: asking(told), ask: 'backoff' };
}

/** The claim id is of no use any more: a grant that came too late, or a tombstone. */
function spent(plan: ClaimPlan, why: 'late'): ClaimStep {
  return plan.waits
    ? { state: FIRST_CLAIM_STATE, cancel: true, renewId: true, ask: 'now' }
    : { ...end({ end: 'fault', cause: undefined, why }), cancel: true };
}

function givenUp(told: Told, reason: GiveUp): ClaimStep {
  if (reason !== 'timeout') return { ...end({ end: reason }), cancel: true };
  const outcome: ClaimEnd = told.answered
    ? { end: 'busy' }
    : { end: 'fault', cause: told.fault, why: told.failures > 0 ? 'failed' : 'no-answer' };
  return { ...end(outcome), cancel: true };
}

function asking(told: Told): ClaimState {
  return { phase: 'asking', told };
}

function heard(told: Told): Told {
  return { failures: 0, answered: true, fault: undefined, noticed: told.noticed };
}

function end(settle: ClaimEnd): ClaimStep {
  return { state: { phase: 'done' }, settle };
}
