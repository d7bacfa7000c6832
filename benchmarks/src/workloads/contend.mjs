// Waiters of one process on one key, each with a client of its own. Every hold is written down with the machine's
// monotonic time, so that the stage can put the holds of all processes in one order.
import { setTimeout as pause } from 'node:timers/promises';

/** Milliseconds on the monotonic clock that all processes of this machine share. */
export function machineMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Whoever holds the lock at the end still leaves. */
const GRACE_MS = 40;

/**
 * `[waiter, asked, entered, left, token]` of each hold, and `[waiter, asked]` of each that is still waited for at the end:
 * some peers need seconds until the last waiter has had its turn, and nobody waits for that. `failures`: what was said by
 * those that failed, or that did not do the work once.
 */
export async function contend(client, { key, waiters, first, startAt, endAt, holdMs, thinkMs, oneClient }) {
  const holds = [];
  const waiting = new Map();
  const failures = [];
  const loop = async (n) => {
    const contender = await (oneClient ? client() : client(`waiter ${n}`, { connections: 1 }));
    await pause(Math.max(0, startAt - machineMs()));
    while (machineMs() < endAt) {
      const asked = machineMs();
      waiting.set(n, asked);
      let calls = 0;
      try {
        await contender.pair(key, async (token) => {
          const entered = machineMs();
          calls += 1;
          waiting.delete(n);
          if (holdMs > 0) await pause(holdMs);
          holds.push([first + n, asked, entered, machineMs(), token]);
        });
        if (calls !== 1) throw new Error(`the work was done ${calls} times`);
      } catch (error) {
        failures.push(error?.message ?? String(error));
      }
      // Whoever fails at once would leave no room for anybody else.
      if (thinkMs > 0 || calls === 0) await pause(thinkMs);
    }
  };
  const loops = Promise.all(Array.from({ length: waiters }, (_, n) => loop(n)));
  await Promise.race([loops, pause(endAt + holdMs + GRACE_MS - machineMs())]);
  // What cannot be opened later fails its process, and not this play.
  loops.catch(() => undefined);
  return {
    holds: [...holds],
    waiting: [...waiting].map(([n, asked]) => [first + n, asked]),
    failures: [...failures],
  };
}
