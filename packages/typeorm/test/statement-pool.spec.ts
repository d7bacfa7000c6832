/** How long a statement waits for a connection of the application's pool and for its answer. */
import { SeededRandom, VirtualClock } from '@guard/testing';
import { StatementPool, type Taken } from '../src/server/statement-pool.js';

/** A pool that has its connections when a test hands them out. */
function stage() {
  const clock = new VirtualClock();
  const asked: ((taken: Taken) => void)[] = [];
  const sent: string[] = [];
  const back: boolean[] = [];
  const taken = (answer: Promise<[]>): Taken => ({
    send: (text) => (sent.push(text), answer),
    giveBack: (broken) => void back.push(broken),
  });
  const statements = new StatementPool({
    connections: {
      isOpen: () => true,
      take: () => new Promise((resolve) => asked.push(resolve)),
      batch: () => [],
      isTransient: () => false,
      breaks: () => false,
      explained: (error) => error,
    },
    ...{ place: 'db', clock, random: new SeededRandom(1) },
  });
  return { clock, asked, sent, back, taken, statements };
}

describe('a statement', () => {
  it('[L3] waits for a connection no longer than its time, and is not sent when one comes later', async () => {
    const { clock, asked, sent, back, taken, statements } = stage();
    const waiting = statements.rows('SELECT 1', [], 3_000).catch((error: unknown) => error);
    await clock.advance(2_999);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    expect(await waiting).toMatchObject({
      code: 'unavailable',
      message: '[unavailable] the pool of db had no connection in time',
    });
    asked[0]!(taken(Promise.resolve([])));
    await clock.settle();
    expect([sent, back]).toEqual([[], [false]]);
  });

  it('[L3] waits for its answer no longer than what is left of its time, and gives its connection up', async () => {
    const { clock, asked, sent, back, taken, statements } = stage();
    const waiting = statements.rows('SELECT 1', [], 3_000).catch((error: unknown) => error);
    await clock.advance(2_000);
    asked[0]!(taken(new Promise(() => undefined)));
    await clock.advance(1_000);
    expect(await waiting).toMatchObject({
      code: 'unavailable',
      message: '[unavailable] db did not answer in time',
    });
    expect([sent, back]).toEqual([['SELECT 1'], [true]]);
  });

  it('gives its connection back once, whole after an answer and as the server says after an error', async () => {
    const { clock, asked, back, taken, statements } = stage();
    const answered = statements.rows('SELECT 1', []);
    asked[0]!(taken(Promise.resolve([])));
    expect(await answered).toEqual([]);
    const failed = statements.rows('SELECT 1', []).catch((error: unknown) => error);
    asked[1]!(taken(Promise.reject(new Error('no'))));
    expect(await failed).toMatchObject({ message: 'no' });
    await clock.advance(10_000);
    expect(back).toEqual([false, false]);
  });
});
