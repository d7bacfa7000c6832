/** The end of an application, seen from its timers, its callers and its log. On real time. */
import { join } from 'node:path';
import { createGuard, type GuardError, Locked, memoryLocks, memoryState, SingleRun } from '@guard/core';
import { GuardModule, type GuardModuleOptions } from '@guard/nestjs';
import { startWorker } from '@guard/testing';
import { Injectable, type Provider } from '@nestjs/common';
import { Interval, ScheduleModule } from '@nestjs/schedule';
import type { TestingModule } from '@nestjs/testing';
import { closeAll, guardOf, KeptLogger, started, until } from './support/app.js';

afterEach(closeAll);

let logger: KeptLogger;
beforeEach(() => {
  logger = new KeptLogger();
});

function application(provider: Provider, more: Partial<GuardModuleOptions> = {}): Promise<TestingModule> {
  const guard = GuardModule.forRoot({ locks: memoryLocks(), state: memoryState(), ...more });
  return started({ imports: [ScheduleModule.forRoot(), guard], providers: [provider] }, logger);
}

const codes = (errors: readonly unknown[]): unknown[] => errors.map((error) => (error as GuardError).code);

describe('[L3] what waits for its lock when the application closes', () => {
  const shared = { locks: memoryLocks(), state: memoryState() };
  const other = createGuard(shared);
  afterAll(() => other.close());
  const asked: string[] = [];

  @Injectable()
  class Ticks {
    @Interval(100)
    @Locked({ key: () => (asked.push('tick'), 'busy'), wait: '1m' })
    async locked(): Promise<void> {}
    @Interval(100) @SingleRun({ name: 'single', wait: '1m' }) async single(): Promise<void> {}
    @Locked({ key: 'busy', wait: '1m' }) async byHand(): Promise<void> {}
  }

  test('is told at the level of debug if a timer called it, and to its caller otherwise', async () => {
    await using _lock = await other.acquire('busy');
    let finish: () => void = () => undefined;
    const running = other.run('single', () => new Promise<void>((resolve) => (finish = resolve)));
    const app = await application(Ticks, shared);
    await until(() => asked.length > 2);
    const call = app.get(Ticks).byHand();
    const refused = expect(call).rejects.toMatchObject({ code: 'closed' });
    await app.close();
    await refused;
    finish();
    await running;
    expect(logger.errors).toEqual([]);
    expect(new Set(codes(logger.debugged))).toEqual(new Set(['closed']));
    expect(logger.debugged.length).toBeGreaterThan(asked.length);
  });
});

test('[L3] [S8] a tick that is cut off at the end of the grace stays an error, which says so', async () => {
  let isWorking = false;
  @Injectable()
  class Endless {
    @Interval(100) @SingleRun() async tick(): Promise<void> {
      isWorking = true;
      await new Promise(() => undefined);
    }
  }
  const app = await application(Endless, { grace: '100ms' });
  await until(() => isWorking);
  await app.close();
  expect(logger.errors).toEqual([
    expect.objectContaining({
      code: 'closed',
      reason: 'grace-over',
      message: expect.stringMatching(/Endless.tick did not end within the grace/) as string,
    }),
  ]);
});

test('[L3] an error of the work itself during the grace stays an error', async () => {
  let isWorking = false;
  @Injectable()
  class Failing {
    @Interval(100) @SingleRun() async tick(): Promise<void> {
      isWorking = true;
      await new Promise((resolve) => setTimeout(resolve, 300));
      throw new Error('no paper');
    }
  }
  const app = await application(Failing);
  await until(() => isWorking);
  await app.close();
  expect(logger.errors).toEqual([expect.objectContaining({ message: 'no paper' })]);
});

test('[L3] an application is closed once, however often it is asked to', async () => {
  const app = await application({ provide: 'nothing', useValue: 1 });
  await Promise.all([app.close(), app.close()]);
  await app.close();
  expect([guardOf(app).health().state, logger.errors]).toEqual(['closed', []]);
});

test('[L3] SIGTERM during a run: it is asked to finish, ends, and the process goes with the signal', async () => {
  const worker = startWorker<string>(join(__dirname, 'process', 'terminated.ts'), { exitWithinMs: 20_000 });
  expect(await worker.next()).toBe('working');
  worker.signal('SIGTERM');
  expect(await worker.next()).toBe('asked to finish');
  expect(await worker.next()).toBe('client closed: guard closed, work completed');
  expect(await worker.ended).toEqual({ code: null, signal: 'SIGTERM' });
});
