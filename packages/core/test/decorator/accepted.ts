/**
 * What the types of the decorators accept, and what they refuse. Compiled in both decorator modes by
 * `types.spec.ts`, and never carried out. A refusal stands under an `@ts-expect-error`: where nothing is refused, the
 * compiler complains.
 */
import { Locked, locked, SingleRun, singleRun } from '@guard/core';

interface Order {
  readonly id: string;
}

/** Accepted. */
export class Accepted {
  @SingleRun() async plain(): Promise<void> {}
  @SingleRun({ window: '1h' }) async optional(_a?: number, ..._rest: string[]): Promise<void> {}
  @SingleRun({ key: (order: Order) => order.id }) async keyed(_order: Order): Promise<void> {}
  @SingleRun({ key: (order: Order) => [order.id, 1], onDuplicate: 'result' }) async more(
    order: Order,
    cents: number,
  ): Promise<number> {
    return order.id.length + cents;
  }
  @SingleRun({ key: (id: string) => id, input: (id, cents) => [id, cents], onDuplicate: 'result' })
  async fewer(_id: string, cents: number): Promise<number> {
    return cents;
  }
  @SingleRun({
    input: (id: string, cents: number) => [id, cents],
    compensate: (run, id, cents) => [run.key, id.length, cents.toFixed()],
  })
  async compensated(_id: string, _cents: number): Promise<void> {}
  @SingleRun({ onDuplicate: 'throw' }) async generic<T>(value: T): Promise<T> {
    return value;
  }
  @SingleRun({ key: 'fixed' }) static async statics(): Promise<void> {}
  @SingleRun() protected async hidden(): Promise<void> {}
  @Locked() async nothing(): Promise<string> {
    return 'any result';
  }
  @Locked({ key: (id: string) => `account:${id}`, wait: '5s' }) async transfer(
    _id: string,
    cents: number,
  ): Promise<number> {
    return cents;
  }
  @Locked({ key: ['a', 1] }) async bounded<T extends object>(value: T): Promise<T> {
    return value;
  }
}

/** Refused. */
export class Refused {
  // @ts-expect-error a skipped call would hand `undefined` to somebody who expects a value
  @SingleRun() async value(): Promise<number> {
    return 1;
  }
  // @ts-expect-error the same with the default said aloud
  @SingleRun({ onDuplicate: 'skip' }) async skips(): Promise<string> {
    return 'x';
  }
  // @ts-expect-error a guarded method gives a promise, so it has to promise one
  @SingleRun() sync(): void {}
  // @ts-expect-error a key of another type than the argument
  @SingleRun({ key: (id: number) => id }) async wrongKey(_id: string): Promise<void> {}
  // @ts-expect-error an input of another type than the argument
  @SingleRun({ input: (id: number) => id }) async wrongInput(_id: string): Promise<void> {}
  // @ts-expect-error a key whose second argument is of another type
  @Locked({ key: (_a: string, b: number) => b }) async wrongSecond(_a: string, _b: string): Promise<void> {}
  // @ts-expect-error no such option
  @SingleRun({ keys: 1 }) async unknown(): Promise<void> {}
  // @ts-expect-error not a duration
  @Locked({ wait: 'soon' }) async notADuration(): Promise<void> {}
}

/** Plain functions keep their types. */
export const sum: (a: number, b: number) => Promise<number> = singleRun(
  { name: 'sum', key: (a: number, b: number) => a + b, onDuplicate: 'result' },
  async (a: number, b: number) => a + b,
);
export const first: (id: string) => Promise<string> = locked(
  { key: (id: string) => id },
  async (id: string) => id,
);
// @ts-expect-error a function that gives a value must say what a skipped call does
export const skipped = singleRun({ name: 'sum' }, async () => 1);
// @ts-expect-error a plain function has no name of its own
export const nameless = singleRun({}, async () => undefined);
