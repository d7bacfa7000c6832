/** Does single operations on locks and state that the test asks for, and answers what came of them. */
import type { Claim, LeaseRef, StateWrite } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { typeormLocks, typeormState } from '@guard/typeorm';
import { ask, look, release } from '../support/locking.js';
import { dataSourceOn } from '../support/place.js';

/** An order of the test. Tokens travel as texts. */
export type Order =
  | { readonly do: 'acquire'; readonly claim: Claim }
  | { readonly do: 'release'; readonly lease: Omit<LeaseRef, 'token'> & { readonly token: string } }
  | { readonly do: 'look'; readonly key: string }
  | { readonly do: 'write'; readonly write: StateWrite }
  | { readonly do: 'end' };

const main: WorkerMain<{ file: string; wallShiftMs?: number }> = async ({ input, tell, hear }) => {
  const { file, wallShiftMs = 0 } = input;
  const clock = {
    now: () => ({ monoMs: performance.now(), wallMs: Date.now() + wallShiftMs }),
    setTimer: (run: () => void, ms: number) => {
      const timer = setTimeout(run, ms);
      return { cancel: () => clearTimeout(timer) };
    },
    yield: (run: () => void) => void setImmediate(run),
  };
  const locks = typeormLocks(dataSourceOn(file), { clock });
  const state = typeormState(dataSourceOn(file), { clock });

  async function carryOut(order: Exclude<Order, { do: 'end' }>): Promise<unknown> {
    switch (order.do) {
      case 'acquire':
        return ask(locks, order.claim);
      case 'release':
        return release(locks, { ...order.lease, token: BigInt(order.lease.token) });
      case 'look':
        return look(locks, order.key);
      case 'write':
        return (await state.write([order.write]))[0];
    }
  }

  let next = hear<Order>();
  await tell('ready');
  for (let order = await next; order.do !== 'end'; order = await next) {
    next = hear<Order>();
    await tell(shown(await carryOut(order)));
  }
  await Promise.all([locks.close(), state.close()]);
};
export default main;

function shown(value: unknown): unknown {
  const text = JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === 'bigint') return String(inner);
    return inner instanceof Error
      ? { message: inner.message, code: (inner as { code?: string }).code }
      : inner;
  });
  return JSON.parse(text) as unknown;
}
