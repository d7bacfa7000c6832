/** Methods with a schedule: Guard's own timer, and run keys from `@Cron` and `@Interval` that stand beside. */
import 'reflect-metadata';
import {
  bindGuard,
  currentRun,
  scheduleBeside,
  SingleRun,
  type SingleRunOptions,
  singleRun,
} from '@guard/core';
import { range, ScheduleStage, START_MS } from './stage.js';

let stage: ScheduleStage;
let seen: string[];
beforeEach(() => {
  stage = new ScheduleStage();
  seen = [];
});
afterEach(() => stage.close());

/** What `@Cron` and `@Interval` of @nestjs/schedule leave on a method. */
function leaves(key: string, value: unknown): MethodDecorator {
  return (_target, _name, descriptor) => Reflect.defineMetadata(key, value, descriptor.value as object);
}
const Cron = (cronTime: unknown, options: object = {}): MethodDecorator =>
  leaves('SCHEDULE_CRON_OPTIONS', { ...options, cronTime });
const Interval = (timeout: number): MethodDecorator => leaves('SCHEDULE_INTERVAL_OPTIONS', { timeout });

const note = (): void => void seen.push(`${currentRun()?.trigger} ${currentRun()?.key.slice(11, 19)}`);

describe("Guard's own timer", () => {
  class Billing {
    @SingleRun({ cron: '*/10 * * * * *' })
    async settle(): Promise<void> {
      note();
    }
  }

  test('calls a bound method once for each instant, on one of the nodes', async () => {
    for (let at = 0; at < 3; at += 1) {
      const node = stage.process();
      bindGuard(new Billing(), node.guard);
      await stage.start(node);
    }
    await stage.clock.advance(30_050);
    expect(seen).toEqual(['cron 00:00:10', 'cron 00:00:20', 'cron 00:00:30']);
  });

  test('asks for an instance of its own for every run where instances do not live as long as the guard', async () => {
    class PerRun {
      constructor(readonly task: string) {}
      @SingleRun({ cron: '*/10 * * * * *' })
      async settle(): Promise<void> {
        seen.push(this.task);
      }
    }
    const node = stage.process();
    let made = 0;
    const perRun = (run: { readonly task: string }): PerRun => new PerRun(`${run.task} ${(made += 1)}`);
    bindGuard(PerRun.prototype, node.guard, { perRun });
    await stage.start(node);
    await stage.clock.advance(20_050);
    expect(seen).toEqual(['PerRun.settle 1', 'PerRun.settle 2']);
    await expect(new PerRun('by hand').settle()).rejects.toMatchObject({ code: 'not-bound' });
  });

  test('leaves calls by hand what they are: they run now', async () => {
    const { guard } = stage.process();
    const billing = new Billing();
    bindGuard(billing, guard);
    await stage.clock.runUntil(billing.settle());
    await stage.clock.runUntil(billing.settle());
    expect(seen.map((line) => line.split(' ')[0])).toEqual(['call', 'call']);
  });

  test('a schedule that could never be followed is refused while the class is being defined', () => {
    const decorate = (options: SingleRunOptions & { onDuplicate?: 'skip' }, method: unknown): unknown =>
      SingleRun(options)({}, 'settle', { value: method as () => Promise<void> });
    expect(() => decorate({ cron: '* * * * *' }, async (_id: string) => undefined)).toThrow(
      /cannot have arguments/,
    );
    expect(() => decorate({ cron: '61 * * * *' }, async () => undefined)).toThrow(/"61"/);
    expect(() => decorate({ cron: '* * * * *', key: 1 }, async () => undefined)).toThrow(/contradict/);
    expect(() => decorate({ every: '1m', guard: stage.process().guard }, async () => undefined)).toThrow(
      /bindGuard/,
    );
    expect(() => singleRun({ name: 'n', every: '1m' }, async () => undefined)).toThrow(/guard.task/);
  });

  test('and so is a second schedule beside it, when the instance is bound', () => {
    class Twice {
      @Cron('* * * * *')
      @SingleRun({ every: '1m' })
      async settle(): Promise<void> {}
    }
    expect(() => bindGuard(new Twice(), stage.process().guard)).toThrow(/two schedules/);
  });
});

describe('[V1] [V17] a run key from the schedule that stands beside', () => {
  class Nightly {
    @SingleRun()
    @Cron('* * * * *', { timeZone: 'Europe/Berlin' })
    async above(): Promise<void> {
      note();
    }

    @Cron('* * * * *')
    @SingleRun()
    async below(): Promise<void> {
      note();
    }

    @SingleRun()
    @Interval(2_000)
    async often(): Promise<void> {
      note();
    }

    @SingleRun({ window: '1h' })
    @Cron('* * * * *')
    async hourly(): Promise<void> {
      note();
    }
  }

  test.each(['above', 'below'] as const)(
    '[B128] @SingleRun %s @Cron: once in the cluster for each instant',
    async (name) => {
      const nodes = range(1, 3).map(() => {
        const nightly = new Nightly();
        bindGuard(nightly, stage.process().guard);
        return nightly;
      });
      await stage.clock.advance(60_000);
      for (const nightly of nodes) {
        await stage.clock.runUntil(nightly[name]());
        await stage.clock.advance(300);
      }
      expect(seen).toEqual(['cron 00:01:00']);
    },
  );

  test('[V17] in either order, what the scheduler of the framework reads is there, its expression unchanged', () => {
    class Others {
      @Interval(2_000)
      @SingleRun()
      async below(): Promise<void> {}
    }
    const { above, below, often } = Nightly.prototype;
    const of = (key: string, method: unknown): unknown => Reflect.getMetadata(key, method as object);
    expect(of('SCHEDULE_CRON_OPTIONS', above)).toEqual({ cronTime: '* * * * *', timeZone: 'Europe/Berlin' });
    expect(of('SCHEDULE_CRON_OPTIONS', below)).toEqual({ cronTime: '* * * * *' });
    expect(of('SCHEDULE_INTERVAL_OPTIONS', often)).toEqual({ timeout: 2_000 });
    expect(of('SCHEDULE_INTERVAL_OPTIONS', Others.prototype.below)).toEqual({ timeout: 2_000 });
    for (const method of [above, below, often, Others.prototype.below])
      expect(scheduleBeside(method)).toBeDefined();
  });

  test('[B141] @Interval: processes that started at different times are one series', async () => {
    let ended = false;
    const nodes = [0, 700, 1_300].map((offsetMs) => {
      const nightly = new Nightly();
      bindGuard(nightly, stage.process().guard);
      const tick = (): void => {
        if (ended) return;
        void nightly.often();
        stage.clock.setTimer(tick, 2_000);
      };
      stage.clock.setTimer(tick, offsetMs + 2_000);
      return nightly;
    });
    await stage.clock.advance(20_000);
    ended = true;
    expect(nodes).toHaveLength(3);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.length).toBeGreaterThanOrEqual(9);
    expect(seen.length).toBeLessThanOrEqual(10);
  });

  test('[V17] a third decorator between the two hides nothing: the run is named by the instant all the same', async () => {
    const through: MethodDecorator = (_target, _name, descriptor) => {
      const inner = descriptor.value as unknown as (...args: unknown[]) => unknown;
      descriptor.value = function (this: unknown, ...args: unknown[]) {
        return inner.apply(this, args);
      } as never;
    };
    class Booked {
      @Cron('*/10 * * * * *', { timeZone: 'UTC' })
      @through
      @SingleRun()
      async settle(): Promise<void> {
        note();
      }
    }
    const booked = [new Booked(), new Booked()];
    for (const each of booked) bindGuard(each, stage.process().guard);
    await stage.clock.advance(10_010);
    for (const each of booked) await stage.clock.runUntil(each.settle());
    expect(seen).toEqual(['cron 00:00:10']);
  });

  test('a window or a key that is given says more', async () => {
    const nightly = new Nightly();
    bindGuard(nightly, stage.process().guard);
    await stage.clock.runUntil(nightly.hourly());
    expect(seen).toEqual(['call 00:00:00']);
  });

  test('a moment, an offset and the zone of the machine are understood', () => {
    const at = new Date(START_MS);
    const beside = (cronTime: unknown, options: object = {}): unknown => {
      const method = async (): Promise<void> => undefined;
      Reflect.defineMetadata('SCHEDULE_CRON_OPTIONS', { ...options, cronTime }, method);
      return scheduleBeside(method);
    };
    expect(beside(at)).toEqual({ key: '2026-01-01T00:00:00.000Z' });
    expect(beside({ toJSDate: () => at })).toEqual({ key: '2026-01-01T00:00:00.000Z' });
    expect(beside('0 3 * * *', { utcOffset: 120 })).toEqual({ cron: '0 3 * * *', timeZone: 'Etc/GMT-2' });
    expect(beside('0 3 * * *', { utcOffset: -5 })).toEqual({ cron: '0 3 * * *', timeZone: 'Etc/GMT+5' });
    expect(() => beside('0 3 * * *', { utcOffset: 330 })).toThrow(/timeZone/);
    const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
    expect(beside('0 3 * * *')).toEqual({ cron: '0 3 * * *', timeZone });
    expect(scheduleBeside(async () => undefined)).toBeUndefined();
  });

  test('an expression that cannot be read is an error of the call, not an unguarded run', async () => {
    class Odd {
      @SingleRun({ name: 'odd' })
      @Cron('not a cron')
      async run(): Promise<void> {
        note();
      }
    }
    const odd = new Odd();
    bindGuard(odd, stage.process().guard);
    await expect(odd.run()).rejects.toMatchObject({ code: 'invalid-argument' });
    expect(seen).toEqual([]);
  });
});
