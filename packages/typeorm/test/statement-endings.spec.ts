/** What becomes of a connection of `pg` whose statement came late: when the pool gets its place back. */
import { EventEmitter } from 'node:events';
import { VirtualClock } from '@guard/testing';
import type { PgClient, PgPool } from '../src/postgres/pg.js';
import { Endings } from '../src/postgres/endings.js';

/** A pool of two on a server that takes requests to cancel, or cannot be reached. */
function stage({ reached = true, ending = false, ssl = false } = {}) {
  const clock = new VirtualClock();
  const asked: (readonly unknown[])[] = [];
  const steps: string[] = [];
  class Connection extends EventEmitter {
    readonly stream = { destroy: () => void steps.push('cut') };
    connect(...to: unknown[]): void {
      steps.push(`to ${to.join(' ')}`);
      if (reached) queueMicrotask(() => this.emit('connect'));
    }
    requestSsl(): void {
      steps.push('ssl');
      queueMicrotask(() => this.emit('sslconnect'));
    }
    cancel(...who: unknown[]): void {
      asked.push(who);
      queueMicrotask(() => this.emit('end'));
    }
  }
  class Client {
    readonly [name: string]: unknown;
    readonly host = ssl ? 'db' : '/run/postgresql';
    readonly port = 5432;
    readonly ssl = ssl;
    readonly connection = new Connection();
  }
  const endings = new Endings({ options: { max: 2 }, ending, Client } as unknown as PgPool, clock);
  const late = () => {
    let finish: () => void = () => undefined;
    const answer = new Promise<never>((_, reject) => (finish = () => reject(new Error('canceled'))));
    let over = false;
    const done = endings.end({ processID: 7, secretKey: 8 } as unknown as PgClient, answer);
    void done.then(() => (over = true));
    return { finish, isOver: () => over };
  };
  return { clock, asked, steps, late };
}

describe('a statement of Postgres that came late', () => {
  it('[L3] is cancelled where its server listens, and its place is free once it ended', async () => {
    const { clock, asked, steps, late } = stage();
    const one = late();
    await clock.settle();
    expect([asked, steps, one.isOver()]).toEqual([
      [[7, 8]],
      ['to /run/postgresql/.s.PGSQL.5432', 'cut'],
      false,
    ]);
    one.finish();
    await clock.settle();
    expect(one.isOver()).toBe(true);
    expect(clock.pendingTimers.total).toBe(0);
  });

  it('is cancelled under the encryption that its pool has', async () => {
    const { clock, asked, steps, late } = stage({ ssl: true });
    late();
    await clock.settle();
    expect([asked, steps]).toEqual([[[7, 8]], ['to 5432 db', 'ssl', 'cut']]);
  });

  it('[L3] has its place freed without an end where the server cannot be reached, or the pool closes', async () => {
    for (const how of [{ reached: false }, { ending: true }]) {
      const { clock, late } = stage(how);
      const one = late();
      await clock.advance(1_999);
      expect(one.isOver()).toBe(false);
      await clock.advance(1);
      expect(one.isOver()).toBe(true);
    }
  });

  it('[L3] is given up where it does not end: in five minutes as many as the pool has, and others are asked to end again', async () => {
    const { clock, asked, late } = stage();
    const all = [late(), late(), late()];
    await clock.advance(2_000);
    expect(all.map((one) => one.isOver())).toEqual([true, true, false]);
    await clock.advance(297_000);
    expect(all[2]!.isOver()).toBe(false);
    expect(asked.length).toBeGreaterThan(100);
    await clock.advance(5_000);
    expect(all[2]!.isOver()).toBe(true);
  });
});
