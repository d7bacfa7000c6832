import { PollPace } from '../../src/runtime/lock/poll-pace.js';

const CHANCES = [0, 0.5, 0.999];

/** Polls a queue that moves on every `turnMs`, until the claim is served. When it polled, and how late it was. */
function wait(pace: PollPace, fromMs: number, ahead: number, turnMs: number, fraction: number) {
  const polls: number[] = [];
  let nowMs = fromMs;
  pace.stands(ahead, nowMs);
  while (nowMs < fromMs + ahead * turnMs) {
    nowMs = pace.nextMs(nowMs, fraction, 2_000);
    pace.polled(nowMs);
    polls.push(nowMs);
    pace.stands(Math.max(0, ahead - Math.floor((nowMs - fromMs) / turnMs)), nowMs);
  }
  pace.turned(nowMs);
  return { polls, lateMs: nowMs - fromMs - ahead * turnMs };
}

describe('polls without messages', () => {
  it.each(CHANCES)(
    '[L2] come 50 to 250 ms apart for who is first in line of a queue that stands (%d)',
    (chance) => {
      const pace = new PollPace();
      for (let nowMs = 0, n = 0; n < 20; n += 1) {
        pace.stands(0, nowMs);
        const nextMs = pace.nextMs(nowMs, chance, 2_000);
        expect(nextMs - nowMs).toBeGreaterThanOrEqual(50);
        expect(nextMs - nowMs).toBeLessThanOrEqual(250);
        nowMs = nextMs;
        pace.polled(nowMs);
      }
    },
  );

  it.each([1, 5, 20, 50, 90, 200])(
    '[L2] are never more than ten in a second, at turns of %d ms',
    (turnMs) => {
      for (const chance of CHANCES) {
        const pace = new PollPace();
        const polls: number[] = [];
        for (let nowMs = 0, n = 0; n < 200; n += 1) {
          pace.stands(n % 3, nowMs);
          // A third of the shortest life of a ticket at the least.
          nowMs = pace.nextMs(nowMs, chance, Math.max(67, turnMs * 10));
          pace.polled(nowMs);
          polls.push(nowMs);
          if (n % 4 === 0) pace.turned(nowMs);
        }
        for (const [n, atMs] of polls.entries()) {
          expect(polls.slice(n).filter((other) => other < atMs + 1_000).length).toBeLessThanOrEqual(10);
        }
      }
    },
  );

  it.each(CHANCES)(
    '[L2] learn how fast a queue moves: neither long before the turn nor long after it (%d)',
    (chance) => {
      const pace = new PollPace();
      wait(pace, 0, 16, 20, chance);
      for (let n = 0; n < 5; n += 1) {
        const { polls, lateMs } = wait(pace, 10_000 * (n + 1), 16, 20, chance);
        expect(polls.length).toBeLessThanOrEqual(5);
        expect(lateMs).toBeLessThan(200);
      }
    },
  );

  it('[L2] become rare again where the queue stops, and are not put off by locks that this process gives back', () => {
    const pace = new PollPace();
    wait(pace, 0, 16, 5, 0.5);
    pace.stands(0, 10_000);
    pace.stands(0, 10_300);
    expect(pace.nextMs(10_300, 0.5, 2_000)).toBe(10_450);
    for (let n = 0; n < 500; n += 1) pace.polled(11_000);
    expect(pace.nextMs(11_000, 0, 2_000)).toBe(11_224);
  });

  it('[L2] are never put off for so long that a ticket of the shortest ttl dies', () => {
    const pace = new PollPace();
    pace.stands(0, 10_000);
    for (let n = 0; n < 500; n += 1) pace.polled(11_000);
    expect(pace.nextMs(11_000, 0.5, 200 / 3)).toBeLessThan(11_200 - 50);
  });
});
