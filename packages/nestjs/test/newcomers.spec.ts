/** Ways of using the module that do not work, and that say so; and a filter that nobody injects into. */
import { GuardError, Locked, memoryLocks, memoryState, SingleRun } from '@guard/core';
import { GuardExceptionFilter, GuardModule, GuardReport, GuardTestingModule } from '@guard/nestjs';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import { bootError, closeAll, KeptLogger, serving, started, until } from './support/app.js';

afterEach(closeAll);

const parts = (): { locks: ReturnType<typeof memoryLocks>; state: ReturnType<typeof memoryState> } => ({
  locks: memoryLocks(),
  state: memoryState(),
});

describe('new GuardExceptionFilter(), which nothing is injected into', () => {
  @Controller()
  class Orders {
    @Get('busy') busy(): never {
      throw new GuardError('lock-busy', 'busy');
    }
    @Get('broken') broken(): never {
      throw new GuardError('invalid-argument', 'broken');
    }
  }

  test('answers as any other', async () => {
    const { url } = await serving({ controllers: [Orders] }, (app) =>
      app.useGlobalFilters(new GuardExceptionFilter()),
    );
    const busy = await fetch(`${url}/busy`);
    expect([busy.status, await busy.json()]).toEqual([423, expect.objectContaining({ code: 'lock-busy' })]);
    const broken = await fetch(`${url}/broken`);
    expect([broken.status, await broken.json()]).toEqual([
      500,
      { statusCode: 500, message: 'Internal server error' },
    ]);
  });
});

describe('the report', () => {
  @Injectable()
  class Nightly {
    @Locked() @Cron('0 3 * * *', { timeZone: 'UTC' }) async tidy(): Promise<void> {}
    @Interval(3_600_000) @Locked() async poll(): Promise<void> {}
    @SingleRun() @Cron('0 4 * * *', { timeZone: 'UTC', disabled: true }) async off(): Promise<void> {}
  }
  const lines = async (...imports: unknown[]): Promise<readonly [GuardReport, readonly string[]]> => {
    const logger = new KeptLogger();
    const app = await started(
      { imports: [GuardTestingModule.forRoot(), ...(imports as never[])], providers: [Nightly] },
      logger,
    );
    return [app.get(GuardReport), logger.warned];
  };

  test('has the schedule of what is locked, and says what is disabled', async () => {
    const [report, warned] = await lines(ScheduleModule.forRoot());
    expect(report.entries.map(({ schedule }) => schedule)).toEqual([
      '@Cron 0 3 * * * (UTC)',
      '@Interval 3600000 ms',
      '@Cron 0 4 * * * (UTC), disabled',
    ]);
    expect(warned).toEqual([]);
  });

  test('warns where no ScheduleModule is there to call', async () => {
    const [, warned] = await lines();
    expect(warned).toHaveLength(3);
    expect(warned[0]).toMatch(
      /^Nightly.tidy is for @nestjs\/schedule .* nothing calls it; import ScheduleModule/,
    );
  });
});

describe('refused', () => {
  test('a schedule where the node is started for no tasks', async () => {
    class Scheduled {
      @SingleRun({ every: '1m' }) async settle(): Promise<void> {}
    }
    const { message } = await bootError({
      imports: [GuardModule.forRoot({ ...parts(), start: { tasks: [] } })],
      providers: [Scheduled],
    });
    expect(message).toMatch(/Scheduled.settle has every, and the node of .* is started for no tasks/);
  });

  test('a second guard of one name in a module that is loaded later', async () => {
    @Module({ imports: [GuardModule.forRoot(parts())] })
    class Late {}
    const app = await started({ imports: [GuardModule.forRoot(parts())] });
    await expect(app.get(LazyModuleLoader).load(() => Late)).rejects.toThrow(
      /the guard 'default' is registered 2 times/,
    );
  });

  test('a factory that answers nothing, by its name', async () => {
    const module = GuardModule.forRootAsync({ useFactory: () => undefined as never });
    const error = await bootError({ imports: [module] });
    expect(error).toMatchObject({ code: 'invalid-argument' });
    expect(error.message).toMatch(/useFactory of GuardModule.forRootAsync for the guard 'default' answered/);
  });

  test("a 'global' that is neither true nor false", () => {
    const global = 'no' as never;
    expect(() => GuardModule.forRoot({ ...parts(), global })).toThrow(/global must be true or false/);
    expect(() => GuardModule.forRootAsync({ useFactory: parts, global })).toThrow(/global must be/);
  });
});

describe('[L3] timers of @nestjs/schedule during the grace', () => {
  test.each([
    ['first', (guard: unknown) => [ScheduleModule.forRoot(), guard]],
    ['last', (guard: unknown) => [guard, ScheduleModule.forRoot()]],
  ])('meet no closed guard, with ScheduleModule imported %s', async (_, imports) => {
    let isWorking = false;
    @Injectable()
    class Often {
      @SingleRun({ name: 'long', key: 'k' }) async long(): Promise<void> {
        isWorking = true;
        await new Promise((resolve) => setTimeout(resolve, 1_500));
      }
      @Interval(100) @SingleRun() async tick(): Promise<void> {}
      @Interval(100) @Locked() async lock(): Promise<void> {}
      @Cron('* * * * * *', { initialDelay: 200 }) @SingleRun() async delayed(): Promise<void> {}
    }
    const logger = new KeptLogger();
    const guard = GuardModule.forRoot(parts());
    const app = await started({ imports: imports(guard) as never, providers: [Often] }, logger);
    const work = app.get(Often).long();
    await until(() => isWorking);
    await app.close();
    await work;
    expect(logger.errors).toEqual([]);
  });
});
