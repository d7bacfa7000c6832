/** The module for tests of an application. */
import {
  currentLock,
  currentRun,
  type Guard,
  Locked,
  memoryLocks,
  memoryState,
  SingleRun,
} from '@guard/core';
import {
  getGuardOptionsToken,
  GuardModule,
  GuardRecorder,
  GuardTestingModule,
  InjectGuard,
} from '@guard/nestjs';
import { VirtualClock } from '@guard/testing';
import { Injectable, Module } from '@nestjs/common';
import { closeAll, compiled, guardOf, started } from './support/app.js';

afterEach(closeAll);

@Injectable()
class Billing {
  readonly seen: string[] = [];
  constructor(@InjectGuard() readonly guard: Guard) {}
  @SingleRun({ cron: '* * * * *' }) async nightly(): Promise<void> {
    this.seen.push(String(currentRun()?.key));
  }
  @SingleRun({ key: (id: string) => id, onDuplicate: 'throw', retry: { attempts: 3 } })
  async charge(id: string): Promise<string> {
    this.seen.push(`charge ${id}`);
    if (id === 'broken') throw new Error('broken');
    return `${id} ${currentRun()?.task}`;
  }
  @Locked({ key: 'account' }) async transfer(wait: Promise<void>): Promise<string | undefined> {
    await wait;
    return currentLock()?.key;
  }
}

test('time is in the hand of the test, and the recorder keeps what the guard told', async () => {
  const clock = new VirtualClock();
  const recorder = new GuardRecorder();
  const imports = [GuardTestingModule.forRoot({ clock, recorder })];
  const app = await clock.runUntil(started({ imports, providers: [Billing] }));
  await clock.advance(120_100);
  expect(app.get(Billing).seen).toEqual(['2026-01-01T00:01:00.000Z', '2026-01-01T00:02:00.000Z']);
  expect(recorder.completed()).toEqual(['Billing.nightly', 'Billing.nightly']);
  await clock.runUntil(app.get(Billing).charge('a'));
  await expect(clock.runUntil(app.get(Billing).charge('a'))).rejects.toMatchObject({ code: 'run-skipped' });
  expect(recorder.skipped()).toEqual(['Billing.charge: completed']);
  expect(recorder.events().length).toBeGreaterThan(recorder.events('run-started').length);
  recorder.clear();
  expect(recorder.events()).toEqual([]);
  await clock.runUntil(closeAll());
});

test('switched off, decorated methods are plain methods that still know their run and lock', async () => {
  const recorder = new GuardRecorder();
  const app = await started({
    imports: [GuardTestingModule.forRoot({ off: true, recorder })],
    providers: [Billing],
  });
  const billing = app.get(Billing);
  await expect(billing.charge('a')).resolves.toBe('a Billing.charge');
  await expect(billing.charge('a')).resolves.toBe('a Billing.charge');
  await expect(billing.charge('broken')).rejects.toThrow(/^broken$/);
  expect(billing.seen).toEqual(['charge a', 'charge a', 'charge broken']);
  let go: () => void = () => undefined;
  const first = billing.transfer(new Promise((resolve) => (go = resolve)));
  await expect(billing.transfer(Promise.resolve())).resolves.toMatch(/^account /);
  go();
  await expect(first).resolves.toMatch(/^account /);
  expect(guardOf(app).health().state).toBe('idle');
  expect(recorder.completed()).toHaveLength(2);
  expect((await guardOf(app).runs.list({ task: 'Billing.charge' })).runs).toHaveLength(3);
});

test('an application that registers its own guard gets another one by overriding its options', async () => {
  const reached = jest.fn(() => Promise.reject(new Error('the real server')));
  @Module({
    imports: [GuardModule.forRootAsync({ useFactory: reached })],
    providers: [Billing],
    exports: [Billing],
  })
  class Application {}
  const shared = { locks: memoryLocks(), state: memoryState() };
  const node = async (): Promise<Billing> => {
    const module = await compiled({ imports: [Application] }, (builder) =>
      builder.overrideProvider(getGuardOptionsToken()).useValue(GuardTestingModule.options(shared)),
    );
    await module.init();
    return module.get(Billing);
  };
  const [one, two] = [await node(), await node()];
  await one.charge('a');
  await expect(two.charge('a')).rejects.toMatchObject({ code: 'run-skipped', reason: 'completed' });
  expect(reached).not.toHaveBeenCalled();
});

test('time is in the hand of the test under fake timers too, where setImmediate is real', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  try {
    const clock = new VirtualClock();
    const app = await started({ imports: [GuardTestingModule.forRoot({ clock })], providers: [Billing] });
    await clock.advance(61_000);
    expect(app.get(Billing).seen).toHaveLength(1);
  } finally {
    jest.useRealTimers();
  }
});
