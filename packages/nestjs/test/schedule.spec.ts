/** Beside @nestjs/schedule: its timers stay, and of all calls for an instant one runs. On real time. */
import { bindGuard, currentRun, memoryLocks, memoryState, SingleRun, systemClock } from '@guard/core';
import { GuardModule, GuardRecorder, GuardTestingModule } from '@guard/nestjs';
import { faultyBackend } from '@guard/testing';
import { Injectable } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { closeAll, guardOf, started, until } from './support/app.js';

afterEach(closeAll);

let ran: string[];
beforeEach(() => {
  ran = [];
});
const note = (name: string): void => void ran.push(`${name} ${currentRun()?.key}`);

/** Copies what others left on the method, as decorators for transactions do. */
const transactional: MethodDecorator = (_target, _key, descriptor) => {
  const inner = descriptor.value as unknown as (...args: unknown[]) => Promise<unknown>;
  const outer = async function (this: unknown, ...args: unknown[]): Promise<unknown> {
    ran.push('begin');
    try {
      return await inner.apply(this, args);
    } finally {
      ran.push('end');
    }
  };
  const { getMetadataKeys, getMetadata, defineMetadata } = Reflect as never as {
    getMetadataKeys: (of: unknown) => unknown[];
    getMetadata: (key: unknown, of: unknown) => unknown;
    defineMetadata: (key: unknown, value: unknown, of: unknown) => void;
  };
  for (const key of getMetadataKeys(inner)) defineMetadata(key, getMetadata(key, inner), outer);
  descriptor.value = outer as never;
};

@Injectable()
class Nightly {
  @SingleRun() @Cron('* * * * * *') async above(): Promise<void> {
    note('above');
  }
  @Cron('* * * * * *') @SingleRun() async below(): Promise<void> {
    note('below');
  }
  @Interval(1_000) @SingleRun() async often(): Promise<void> {
    note('often');
  }
}

test('[V17] [B115] [B118] above and below, in three nodes and twice in one of them: each instant once', async () => {
  const shared = { locks: memoryLocks(), state: memoryState() };
  const node = (...more: object[]): Promise<unknown> =>
    started({
      imports: [ScheduleModule.forRoot(), GuardModule.forRoot(shared)],
      providers: [Nightly, ...more] as never,
    });
  await node();
  await node();
  await node({ provide: 'alias', useExisting: Nightly });
  await until(() =>
    ['above', 'below', 'often'].every((name) => ran.filter((one) => one.startsWith(name)).length > 2),
  );
  await closeAll();
  expect(new Set(ran).size).toBe(ran.length);
});

test('[V17] a decorator for transactions around or inside keeps all of it', async () => {
  @Injectable()
  class Booked {
    @SingleRun() @transactional @Cron('* * * * * *') async around(): Promise<void> {
      note('around');
    }
    @Cron('* * * * * *') @transactional @SingleRun() async inside(): Promise<void> {
      note('inside');
    }
  }
  const app = await started({
    imports: [ScheduleModule.forRoot(), GuardTestingModule.forRoot()],
    providers: [Booked],
  });
  expect(app.get(SchedulerRegistry).getCronJobs().size).toBe(2);
  await until(() =>
    ['around', 'inside'].every((name) => ran.filter((one) => one.startsWith(name)).length > 1),
  );
  await closeAll();
  const runs = ran.filter((one) => one.startsWith('around') || one.startsWith('inside'));
  expect(new Set(runs).size).toBe(runs.length);
  expect(runs.every((run) => /T.*Z$/.test(run))).toBe(true);
});

test('[B125] no run while the lock cannot be taken, every failure is told, and runs go on afterwards', async () => {
  const faulty = faultyBackend(memoryLocks(), { clock: systemClock });
  const recorder = new GuardRecorder();
  const app = await started({
    imports: [
      ScheduleModule.forRoot(),
      GuardTestingModule.forRoot({
        locks: faulty.backend,
        recorder,
        onUnavailable: 'skip',
        defaults: { ttl: '3s' },
      }),
    ],
    providers: [Nightly],
  });
  await until(() => ran.length > 1);
  recorder.clear();
  faulty.down();
  await new Promise((resolve) => setTimeout(resolve, 50));
  ran = [];
  await until(() => recorder.skipped().length > 2);
  expect(ran).toEqual([]);
  expect(recorder.skipped().every((told) => told.endsWith(': unavailable'))).toBe(true);
  expect(recorder.events('backend-unavailable').length).toBeGreaterThan(0);
  expect(guardOf(app).health().unavailable).toEqual(['memory']);
  faulty.heal();
  await until(() => ran.length > 2, 30_000);
});

test("Guard's own timer runs what is bound by hand, beside what the module binds", async () => {
  class Elsewhere {
    @SingleRun({ every: '200ms' }) async often(): Promise<void> {
      note('elsewhere');
    }
  }
  const app = await started({ imports: [GuardTestingModule.forRoot()] });
  bindGuard(new Elsewhere(), guardOf(app));
  await until(() => ran.length > 1);
});
