import {
  FIRST_CLAIM_STATE,
  claimStep,
  type ClaimEvent,
  type ClaimPlan,
  type ClaimState,
} from '../../src/machine/claim.js';
import { backoffMs } from '../../src/machine/backoff.js';

const at = (monoMs: number): { monoMs: number; wallMs: number } => ({ monoMs, wallMs: monoMs });
const plan: ClaimPlan = {
  waits: true,
  ttlMs: 10_000,
  ticketTtlMs: 6_000,
  faultBudgetMs: 1_000,
  startedAt: at(0),
};
const tries: ClaimPlan = { ...plan, waits: false };
const view = { minted: 5n, sentAt: at(100) };
const queued = claimStep(plan, FIRST_CLAIM_STATE, { type: 'queued', view, now: at(110) }).state;
const noticed = (token: bigint, nowMs: number, seen: typeof view | undefined = view): ClaimEvent => ({
  type: 'noticed',
  token,
  view: seen,
  now: at(nowMs),
});
const failed = (nowMs: number, permanent = false): ClaimEvent => ({
  type: 'failed',
  cause: 'why',
  permanent,
  now: at(nowMs),
});

describe('the life of a claim', () => {
  it('[S1] believes a grant from the sending of its request, for the ttl less the margin', () => {
    const step = claimStep(plan, FIRST_CLAIM_STATE, {
      type: 'granted',
      token: 7n,
      sentAt: at(50),
      now: at(9_849),
    });
    expect(step.settle).toEqual({
      end: 'granted',
      token: 7n,
      trust: { sentAt: at(50), trustMs: 9_800 },
      handedOver: false,
    });
    expect(step.cancel).toBeUndefined();
  });

  it('[S1] gives a grant back that came after its own deadline, and goes on under a new id', () => {
    const late: ClaimEvent = { type: 'granted', token: 7n, sentAt: at(50), now: at(9_850) };
    expect(claimStep(plan, FIRST_CLAIM_STATE, late)).toMatchObject({
      cancel: true,
      renewId: true,
      ask: 'now',
      state: { phase: 'asking' },
    });
    expect(claimStep(tries, FIRST_CLAIM_STATE, late)).toMatchObject({
      cancel: true,
      settle: { end: 'fault', why: 'late' },
    });
  });

  it('[S1] believes a hand-over only by a token larger than everything minted before its ticket was refreshed', () => {
    expect(claimStep(plan, queued, noticed(5n, 200))).toEqual({ state: queued });
    expect(claimStep(plan, queued, noticed(6n, 200)).settle).toEqual({
      end: 'granted',
      token: 6n,
      trust: { sentAt: at(100), trustMs: 5_880 },
      handedOver: true,
    });
  });

  it('[S1] asks instead of believing when a hand-over is older than a ticket’s life', () => {
    expect(claimStep(plan, queued, noticed(6n, 5_979)).settle).toBeDefined();
    expect(claimStep(plan, queued, noticed(6n, 5_980))).toEqual({ state: queued, ask: 'now' });
  });

  it('remembers a message that overtook the answer which made the ticket', () => {
    const early = claimStep(plan, FIRST_CLAIM_STATE, noticed(6n, 105, undefined)).state;
    expect(early.phase).toBe('asking');
    expect(claimStep(plan, early, { type: 'queued', view, now: at(110) }).settle).toMatchObject({
      end: 'granted',
      token: 6n,
    });
    const old = claimStep(plan, FIRST_CLAIM_STATE, noticed(5n, 105, undefined)).state;
    expect(claimStep(plan, old, { type: 'queued', view, now: at(110) }).state.phase).toBe('queued');
  });

  it('[S6] ends as busy only after an answer, and as a fault after a fault or silence', () => {
    const timeout: ClaimEvent = { type: 'given-up', reason: 'timeout' };
    expect(claimStep(plan, FIRST_CLAIM_STATE, timeout)).toMatchObject({
      cancel: true,
      settle: { end: 'fault', why: 'no-answer' },
    });
    expect(claimStep(plan, queued, timeout)).toMatchObject({ cancel: true, settle: { end: 'busy' } });
    const troubled = claimStep(plan, queued, failed(300)).state;
    expect(troubled.phase).toBe('queued');
    expect(claimStep(plan, troubled, timeout)).toMatchObject({
      settle: { end: 'fault', cause: 'why', why: 'failed' },
    });
  });

  it('[L3] repeats a try for its budget only, and a permanent fault not at all', () => {
    expect(claimStep(tries, FIRST_CLAIM_STATE, failed(999))).toMatchObject({
      ask: 'backoff',
      state: { phase: 'asking' },
    });
    expect(claimStep(tries, FIRST_CLAIM_STATE, failed(1_000))).toMatchObject({
      cancel: true,
      settle: { end: 'fault' },
    });
    expect(claimStep(plan, FIRST_CLAIM_STATE, failed(1, true))).toMatchObject({
      cancel: true,
      settle: { end: 'fault' },
    });
  });

  it('leaves nothing to cancel after a try that was answered busy, and polls where it waits without a queue', () => {
    expect(claimStep(tries, FIRST_CLAIM_STATE, { type: 'busy' })).toEqual({
      state: { phase: 'done' },
      settle: { end: 'busy' },
    });
    expect(claimStep(plan, FIRST_CLAIM_STATE, { type: 'busy' })).toMatchObject({ ask: 'poll' });
  });

  it('[S4] takes a new id after a tombstone refused the old one', () => {
    expect(claimStep(plan, queued, { type: 'cancelled' })).toMatchObject({
      renewId: true,
      ask: 'now',
      cancel: true,
    });
    expect(claimStep(tries, FIRST_CLAIM_STATE, { type: 'cancelled' })).toMatchObject({
      settle: { end: 'fault' },
    });
  });

  it.each(['aborted', 'closed'] as const)('[S4] cancels what it asked for when it is %s', (reason) => {
    for (const state of [FIRST_CLAIM_STATE, queued]) {
      expect(claimStep(plan, state, { type: 'given-up', reason })).toMatchObject({
        cancel: true,
        settle: { end: reason },
      });
    }
  });

  it('ends once, whatever still arrives', () => {
    const done: ClaimState = { phase: 'done' };
    const events: ClaimEvent[] = [
      { type: 'granted', token: 1n, sentAt: at(0), now: at(1) },
      { type: 'queued', view, now: at(1) },
      { type: 'busy' },
      { type: 'cancelled' },
      failed(1),
      noticed(9n, 1),
      { type: 'given-up', reason: 'timeout' },
    ];
    for (const event of events) expect(claimStep(plan, done, event)).toEqual({ state: done });
  });
});

describe('the pause after a fault', () => {
  it('grows to a second, and is spread over its upper half', () => {
    expect([backoffMs(1, 0), backoffMs(1, 1)]).toEqual([25, 50]);
    expect([backoffMs(3, 0), backoffMs(3, 1)]).toEqual([100, 200]);
    expect([backoffMs(60, 0), backoffMs(60, 1)]).toEqual([500, 1_000]);
  });
});
