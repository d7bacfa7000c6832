// Decorated methods in an application: compiled by every supported compiler, in both of its decorator modes and in
// both module formats, against the published types; then run.
import assert from 'node:assert/strict';
import {
  createGuard,
  currentLock,
  currentRun,
  GuardError,
  kvRuns,
  Locked,
  memoryLocks,
  memoryState,
  setDefaultGuard,
  SingleRun,
} from '@guard/core';

interface Order {
  readonly id: string;
}

class Billing {
  readonly seen: string[] = [];

  @SingleRun({ window: '1d' })
  async settle(): Promise<void> {
    this.seen.push(`${currentRun()?.task} ${currentRun()?.attempt}`);
  }

  @SingleRun({ name: 'charge', key: (order: Order) => order.id, onDuplicate: 'result' })
  async charge(order: Order, cents: number): Promise<string> {
    return `${order.id} ${cents}`;
  }

  @SingleRun({ key: 'once', onDuplicate: 'throw' })
  async fails(): Promise<number> {
    throw new RangeError('no such account');
  }

  @Locked({ key: (id: string) => `account:${id}`, wait: '5s' })
  async transfer(_id: string, cents: number): Promise<string> {
    return `${currentLock()?.key} ${cents}`;
  }

  @Locked()
  static async report<T>(value: T): Promise<[T, unknown]> {
    return [value, currentLock()?.key];
  }

  // @ts-expect-error a skipped call would hand `undefined` to somebody who expects a value
  @SingleRun()
  async value(): Promise<number> {
    return 1;
  }
}

async function main(): Promise<void> {
  await assert.rejects(new Billing().settle(), (error) => GuardError.is(error, 'not-bound'));
  const state = memoryState();
  const guard = createGuard({ locks: memoryLocks(), state, runs: kvRuns(state), namespace: 'consumer' });
  setDefaultGuard(guard);
  const billing = new Billing();
  await billing.settle();
  await billing.settle();
  assert.deepEqual(billing.seen, ['Billing.settle 1']);
  assert.equal(await billing.charge({ id: 'a' }, 5), 'a 5');
  assert.equal(await billing.charge({ id: 'a' }, 7), 'a 5');
  assert.equal(await billing.charge({ id: 'b' }, 7), 'b 7');
  await assert.rejects(billing.fails(), RangeError);
  assert.equal(await billing.transfer('x', 9), 'account:x 9');
  assert.deepEqual(await Billing.report(1), [1, 'Billing.report']);
  await guard.close();
  console.log('came to its end');
}

void main();
