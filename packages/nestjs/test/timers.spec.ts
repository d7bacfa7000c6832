/** Timers of @nestjs/schedule that would not call what they stand on, or not as it looks. */
import { currentRun, type Guard, Locked, memoryLocks, memoryState, type Run, SingleRun } from '@guard/core';
import { GuardModule, GuardReport, GuardTestingModule, InjectGuard } from '@guard/nestjs';
import type { Provider } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { bootError, closeAll, started, until } from './support/app.js';

afterEach(closeAll);

const imports = (): never => [GuardTestingModule.forRoot(), ScheduleModule.forRoot()] as never;

async function refused(provider: Provider): Promise<string> {
  return (await bootError({ imports: imports(), providers: [provider] })).message;
}

/** As decorators do that bind `this`: a getter that answers a new function each time. */
const autobind: MethodDecorator = (_target, _key, descriptor) => {
  const inner = descriptor.value as unknown as (...args: unknown[]) => unknown;
  return {
    configurable: true,
    get(this: unknown) {
      return inner.bind(this);
    },
  } as never;
};

describe('[V17] two timers on one method', () => {
  test.each([
    ['@Interval above @Cron', [Interval(1_000), Cron('0 3 * * *')], '@Cron and @Interval'],
    ['@Cron above @Interval', [Cron('0 3 * * *'), Interval(1_000)], '@Cron and @Interval'],
    ['@Timeout above @Cron', [Timeout(1_000), Cron('0 3 * * *')], '@Cron and @Timeout'],
  ] as const)('%s is refused: one would call, the other would name the run', async (_, timers, both) => {
    const [upper, lower] = timers;
    class Nightly {
      @upper @lower @SingleRun() async above(): Promise<void> {}
      @SingleRun() @upper @lower async below(): Promise<void> {}
      @upper @Locked() @lower async around(): Promise<void> {}
    }
    const lines = (await refused(Nightly)).split('\n- ').slice(1);
    expect(lines).toEqual(
      ['above', 'below', 'around'].map((name) =>
        expect.stringContaining(
          `Nightly.${name} has ${both}, and @nestjs/schedule follows the upper one only`,
        ),
      ),
    );
  });
});

describe('[V17] methods that the scheduler does not find', () => {
  test('a getter that a decorator above put in place is refused', async () => {
    class Nightly {
      @autobind @Cron('0 3 * * *') @SingleRun() async settle(): Promise<void> {}
    }
    expect(await refused(Nightly)).toMatch(/Nightly.settle lost metadata \(SCHEDULE_CRON_OPTIONS.* a getter/);
  });

  test('it is taken where nobody looks for anything, and calls are guarded', async () => {
    class Orders {
      @autobind
      @SingleRun({ key: (id: string) => id, onDuplicate: 'result' })
      async charge(id: string): Promise<string> {
        return `${id} of ${this.constructor.name}`;
      }
    }
    const app = await started({ imports: imports(), providers: [Orders] });
    const { charge } = app.get(Orders);
    expect([await charge('7'), await charge('7')]).toEqual(['7 of Orders', '7 of Orders']);
  });

  test('one that a symbol names is refused', async () => {
    const settle = Symbol('settle');
    class Nightly {
      @Cron('0 3 * * *') @SingleRun({ name: 'settle' }) async [settle](): Promise<void> {}
    }
    expect(await refused(Nightly)).toMatch(
      /Symbol\(settle\) is scheduled by .* no method that a symbol names/,
    );
  });
});

describe('[V17] jobs of the SchedulerRegistry', () => {
  const cron = '* * * * * *';

  test('name their runs by an expression: each instant once, whichever process comes first', async () => {
    const shared = { locks: memoryLocks(), state: memoryState() };
    const instants: string[] = [];
    // As a job that was added at run time does: a method without a decorator of Guard's asks for the run.
    class Jobs {
      constructor(@InjectGuard() private readonly guard: Guard) {}
      @Cron(cron, { timeZone: 'UTC' }) async tick(): Promise<void> {
        const work = async (run: Run): Promise<void> => void instants.push(run.key);
        await this.guard.run('import', { cron, timeZone: 'UTC' }, work);
      }
    }
    const replica = (): ReturnType<typeof started> =>
      started({ imports: [GuardModule.forRoot(shared), ScheduleModule.forRoot()], providers: [Jobs] });
    await Promise.all([replica(), replica()]);
    await until(() => instants.length >= 2);
    expect(instants.every((key) => /^\d{4}-.*\.000Z$/.test(key))).toBe(true);
    expect(new Set(instants).size).toBe(instants.length);
  });

  test('a disabled @Cron that is started by hand is guarded as any other', async () => {
    const instants: unknown[] = [];
    class Nightly {
      @SingleRun() @Cron(cron, { name: 'settle', disabled: true }) async settle(): Promise<void> {
        instants.push(currentRun()?.scheduledFor);
      }
    }
    const shared = GuardModule.forRoot({ locks: memoryLocks(), state: memoryState() });
    const app = await started({ imports: [shared, ScheduleModule.forRoot()], providers: [Nightly] });
    app.get(SchedulerRegistry).getCronJob('settle').start();
    await until(() => instants.length > 0);
    expect(instants[0]).toBeInstanceOf(Date);
  });
});

describe('the report', () => {
  class Nightly {
    @SingleRun() @Cron('0 3 * * *', { timeZone: 'UTC' }) async settle(): Promise<void> {}
    @SingleRun() @Interval(60_000) async poll(): Promise<void> {}
    @SingleRun() @Timeout(60_000) async once(): Promise<void> {}
    @SingleRun({ every: '1m' }) async own(): Promise<void> {}
  }
  const schedules = async (schedule: unknown): Promise<readonly (string | undefined)[]> => {
    const parts = [GuardTestingModule.forRoot(), schedule] as never;
    const app = await started({ imports: parts, providers: [Nightly] });
    return app.get(GuardReport).entries.map((entry) => entry.schedule);
  };
  const all = ['@Cron 0 3 * * * (UTC)', '@Interval 60000 ms', '@Timeout 60000 ms', 'every 1m'];

  test('names every timer', async () => {
    expect(await schedules(ScheduleModule.forRoot())).toEqual(all);
  });

  test.each([
    ['forRoot', ScheduleModule.forRoot({ cronJobs: false, timeouts: false })],
    [
      'forRootAsync',
      ScheduleModule.forRootAsync({ useFactory: () => ({ cronJobs: false, timeouts: false }) }),
    ],
  ])('says what ScheduleModule.%s switched off in this process', async (_, schedule) => {
    const off = ', switched off in this process';
    expect(await schedules(schedule)).toEqual([`${all[0]}${off}`, all[1], `${all[2]}${off}`, all[3]]);
  });
});
