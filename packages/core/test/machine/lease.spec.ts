import {
  granted,
  leaseStep,
  mayAct,
  remainingMs,
  type LeaseEvent,
  type LeaseState,
} from '../../src/machine/lease.js';

const at = (monoMs: number, wallMs = monoMs): { monoMs: number; wallMs: number } => ({ monoMs, wallMs });
const held = granted({ sentAt: at(0), trustMs: 1_000 });
const suspect: LeaseState = {
  phase: 'suspect',
  trust: { sentAt: at(0), trustMs: 1_000 },
  since: at(500, 2_000),
  verdictByMonoMs: 900,
};
const releasing = (sends: number, sentInTime = true): LeaseState => ({
  phase: 'releasing',
  trust: { sentAt: at(0), trustMs: 1_000 },
  sends,
  sentInTime,
});
const looked = (monoMs: number, wallMs = monoMs): LeaseEvent => ({
  type: 'looked',
  now: at(monoMs, wallMs),
  suspectMs: 1_000,
});
const renewed = (sentMs: number, trustMs: number, nowMs: number, nowWallMs = nowMs): LeaseEvent => ({
  type: 'renewed',
  now: at(nowMs, nowWallMs),
  trust: { sentAt: at(sentMs), trustMs },
  suspectMs: 1_000,
});

describe('the life of a lease', () => {
  it('[S1] ends at the deadline on the monotonic clock, to the millisecond', () => {
    expect(mayAct(held, at(999))).toBe(true);
    expect(mayAct(held, at(1_000))).toBe(false);
    expect(remainingMs(held, at(400))).toBe(600);
    expect(leaseStep(held, looked(1_000))).toMatchObject({ state: { phase: 'lost' }, effect: 'tell-lost' });
  });

  it('[S1] counts the larger of the two elapsed times', () => {
    expect(mayAct(held, at(10, 1_000))).toBe(false);
    expect(remainingMs(held, at(10, 700))).toBe(300);
    expect(remainingMs(held, at(700, 10))).toBe(300);
    // The wall clock went back: the monotonic one decides.
    expect(mayAct(held, at(10, -5_000))).toBe(true);
  });

  it('[S1] becomes suspect when only the wall clock is past the deadline', () => {
    const long = granted({ sentAt: at(0), trustMs: 5_000 });
    const step = leaseStep(long, looked(10, 5_000));
    expect(step).toMatchObject({
      state: { phase: 'suspect', verdictByMonoMs: 1_010 },
      effect: 'tell-suspect',
    });
    expect(mayAct(step.state, at(10, 5_000))).toBe(false);
    expect(remainingMs(step.state, at(10, 5_000))).toBe(0);
  });

  it('[L1] is not suspect for longer than until the deadline on the monotonic clock', () => {
    const { state } = leaseStep(held, looked(600, 1_000));
    expect(state).toMatchObject({ phase: 'suspect', verdictByMonoMs: 1_000 });
    expect(leaseStep(state, looked(1_000)).effect).toBe('tell-lost');
  });

  it('[S1] leaves the suspicion only by a renewal that was sent after it', () => {
    expect(leaseStep(suspect, renewed(499, 1_000, 600)).state.phase).toBe('suspect');
    expect(leaseStep(suspect, renewed(500, 1_000, 600)).state.phase).toBe('held');
    expect(leaseStep(suspect, renewed(500, 1_000, 900)).state.phase).toBe('lost');
  });

  it('[L1] is lost when the suspicion is not settled in time, or settled against it', () => {
    expect(leaseStep(suspect, looked(899)).state.phase).toBe('suspect');
    expect(leaseStep(suspect, looked(900)).effect).toBe('tell-lost');
    expect(leaseStep(suspect, { type: 'refused' }).effect).toBe('tell-lost');
  });

  it('[S5] moves its deadline forward and never back', () => {
    const longer = leaseStep(held, renewed(500, 1_000, 600)).state;
    expect(remainingMs(longer, at(600))).toBe(900);
    expect(remainingMs(leaseStep(longer, renewed(600, 100, 650)).state, at(650))).toBe(850);
  });

  it('[S5] is not revived by a renewal whose answer comes after the deadline', () => {
    expect(leaseStep(held, renewed(900, 1_000, 1_000))).toMatchObject({
      state: { phase: 'lost' },
      effect: 'tell-lost',
    });
    const lost = leaseStep(held, { type: 'refused' }).state;
    expect(leaseStep(lost, renewed(10, 1_000, 20))).toEqual({ state: lost, effect: 'none' });
  });

  it('[S5] is not re-armed by a renewal in flight once its release was sent', () => {
    expect(leaseStep(releasing(1), renewed(10, 1_000, 20)).state.phase).toBe('releasing');
  });

  it.each([
    ['released', releasing(1), 'released', 'released'],
    ['lost at the first sending', releasing(1), 'lost', 'lost'],
    ['lost after a re-sending that began in time', releasing(2), 'lost', 'released'],
    ['lost after a re-sending that began too late', releasing(2, false), 'lost', 'unknown'],
  ] as const)('says what became of a release that was answered: %s', (_, state, answer, result) => {
    expect(leaseStep(state, { type: 'release-answered', answer }).state).toEqual({
      phase: 'released',
      result,
    });
  });

  it('counts the sendings of a release, and whether the first was in time', () => {
    const first = leaseStep(held, { type: 'release-sent', now: at(999) }).state;
    expect(first).toMatchObject({ phase: 'releasing', sends: 1, sentInTime: true });
    expect(leaseStep(first, { type: 'release-sent', now: at(5_000) }).state).toMatchObject({
      sends: 2,
      sentInTime: true,
    });
    expect(leaseStep(held, { type: 'release-sent', now: at(1_000) }).state).toMatchObject({
      sentInTime: false,
    });
    expect(leaseStep(first, { type: 'release-given-up' }).state).toEqual({
      phase: 'released',
      result: 'unknown',
    });
  });

  it('tells a loss once, and stays where it ended', () => {
    const events: LeaseEvent[] = [
      looked(9_000),
      renewed(1, 1, 2),
      { type: 'refused' },
      { type: 'release-sent', now: at(1) },
      { type: 'release-answered', answer: 'released' },
      { type: 'release-given-up' },
      { type: 'dropped', reason: 'the lock was let go' },
    ];
    const ends: LeaseState[] = [
      { phase: 'lost', reason: 'the trust deadline passed' },
      { phase: 'released', result: 'released' },
    ];
    for (const end of ends) {
      for (const event of events) expect(leaseStep(end, event)).toEqual({ state: end, effect: 'none' });
    }
    expect(leaseStep(held, { type: 'dropped', reason: 'the lock was let go' }).effect).toBe('tell-lost');
  });
});
