/** Streams of messages of Postgres behind a pooler that keeps them back for a while. */
import { EventEmitter } from 'node:events';
import type { Notice } from '@guard/core';
import { SeededRandom, VirtualClock } from '@guard/testing';
import type { PgPool } from '../src/postgres/pg.js';
import { Notices } from '../src/postgres/notices.js';

/** A pooler that lends one session to everybody, or each client its own. */
function stage() {
  const clock = new VirtualClock();
  const state = { shared: true, connected: 0 };
  const sent: string[] = [];
  const clients = new Set<Client>();
  class Client extends EventEmitter {
    readonly processID = -1;
    session = '7';
    connect(): Promise<void> {
      state.connected += 1;
      this.session = state.shared ? '7' : '8';
      clients.add(this);
      return Promise.resolve();
    }
    query({ text }: { text: string }): Promise<{ rows: object[] }> {
      sent.push(text);
      return Promise.resolve({ rows: [{ session: this.session }] });
    }
    end(): Promise<void> {
      clients.delete(this);
      return Promise.resolve();
    }
  }
  const statements = {
    rows: (_: string, [channel, payload]: readonly unknown[]) => {
      if (channel !== undefined) for (const one of clients) one.emit('notification', { channel, payload });
      return Promise.resolve([{ session: '7' }]);
    },
    batch: () => [],
    close: () => undefined,
  };
  const pool = { options: {}, Client } as unknown as PgPool;
  const notices = new Notices({ statements, pool: () => pool, clock, random: new SeededRandom(1) });
  return { clock, state, sent, notices };
}

describe('a stream of messages behind a pooler that keeps them back', () => {
  it('[L2] is refused once, then open and silent; the pooler is tried after 30 s, 60 s and so on, and never listened on', async () => {
    const { clock, state, sent, notices } = stage();
    const heard: Notice[] = [];
    const subscribe = () => notices.subscribe('session', (notice) => void heard.push(notice));
    await expect(subscribe()).rejects.toMatchObject({ code: 'unavailable' });
    await subscribe();
    expect(heard).toEqual([]);
    await clock.settle();
    expect(heard).toEqual([{ type: 'gap', open: false }]);
    const tries: number[] = [];
    for (let minutes = 0; minutes < 40; minutes += 1) {
      const before = state.connected;
      await clock.advance(60_000);
      if (state.connected > before) tries.push(minutes);
    }
    expect(tries).toEqual([0, 1, 3, 7, 15, 25, 35]);
    expect(heard).toHaveLength(1);
    expect(sent.filter((text) => text.includes('LISTEN'))).toEqual([]);
    await notices.close();
    expect(clock.pendingTimers.total).toBe(0);
  });

  it('[L2] is told that messages come once each client has a session of its own', async () => {
    const { clock, state, notices } = stage();
    const heard: Notice[] = [];
    const subscribe = () => notices.subscribe('session', (notice) => void heard.push(notice));
    await expect(subscribe()).rejects.toMatchObject({ code: 'unavailable' });
    const stream = await subscribe();
    state.shared = false;
    await clock.advance(31_000);
    expect(heard).toEqual([
      { type: 'gap', open: false },
      { type: 'gap', open: true },
    ]);
    await stream.close();
    await clock.settle();
    expect(clock.pendingTimers.total).toBe(0);
  });
});
