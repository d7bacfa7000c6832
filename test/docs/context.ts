/**
 * What code samples of the documentation use without showing it. A sample names what it needs in a comment above it:
 * `<!-- setup: guard, settle -->`. Each sample gets a context of its own.
 */
import 'reflect-metadata';
import { createGuard, memoryLocks, memoryState, SingleRun, systemClock, type Guard } from '@guard/core';

const guards: Guard[] = [];

/** The part of the class of docs/guide/nestjs.md that its test is about. */
class Billing {
  @SingleRun({ cron: '0 4 * * *', timeZone: 'Europe/Berlin', retry: { attempts: 3 } })
  async report(): Promise<void> {}
}

/** A new context. */
export function setup() {
  const guard = createGuard({ locks: memoryLocks(), state: memoryState() });
  guards.push(guard);
  return {
    guard,
    // Somebody else's functions and data.
    settle: async (..._: unknown[]): Promise<number> => 2,
    sendInvoice: async (..._: unknown[]): Promise<void> => undefined,
    transfer: async (..._: unknown[]): Promise<void> => undefined,
    accounts: ['ada', 'grace'],
    clock: systemClock,
    Billing,
    // Mocha's functions, as far as a page needs them.
    describe: (_title: string, _define: () => void): void => undefined,
    it: Object.assign(mochaTest, { skip: mochaTest }),
  };
}

function mochaTest(_title: string, _run: () => Promise<void>): { timeout(ms: number): unknown } {
  return { timeout: () => undefined };
}

/** Closes the guards of every context so far. */
export async function closeAll(): Promise<void> {
  await Promise.all(guards.splice(0).map((guard) => guard.close()));
}
