/** Overrides that lost their guard: a class may have no guarded method left, and is looked at all the same. */
import { Locked, SingleRun } from '@guard/core';
import { GuardReport, GuardTestingModule } from '@guard/nestjs';
import { Injectable, Scope, type Type } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, Timeout } from '@nestjs/schedule';
import { bootError, closeAll, KeptLogger, started } from './support/app.js';

afterEach(closeAll);

class Base {
  @SingleRun() @Cron('* * * * * *') async tick(): Promise<void> {}
}
const imports = (): object[] => [ScheduleModule.forRoot(), GuardTestingModule.forRoot()];

async function warned(type: Type): Promise<readonly string[]> {
  const logger = new KeptLogger();
  const app = await started({ imports: imports() as never, providers: [type] }, logger);
  expect(app.get(GuardReport).entries).toEqual([]);
  return logger.warned;
}

test.each([
  ['@Cron', Cron('* * * * * *')],
  ['@Interval', Interval(1_000)],
  ['@Timeout', Timeout(1_000)],
])('[V19] one under %s is refused, also where nothing else in the class is guarded', async (_, schedule) => {
  @Injectable()
  class Bare extends Base {
    @schedule override async tick(): Promise<void> {}
  }
  const { message } = await bootError({ imports: imports() as never, providers: [Bare] });
  expect(message).toMatch(
    /Bare.tick overrides a method that is guarded, and is not, while @nestjs\/schedule/,
  );
  expect(message).toMatch(/write @SingleRun\(\) on it too/);
});

test('[V19] one that is scheduled where the base is not is refused too, of @Locked and through two classes', async () => {
  abstract class Locking {
    @Locked() async tidy(): Promise<void> {}
  }
  abstract class Between extends Locking {}
  @Injectable()
  class Bare extends Between {
    @Cron('* * * * * *') override async tidy(): Promise<void> {}
  }
  const { message } = await bootError({ imports: imports() as never, providers: [Bare] });
  expect(message).toMatch(/Bare.tidy overrides .* write @Locked\(\) on it too/);
});

test.each([
  ['every', SingleRun({ every: '1m' })],
  ['cron', SingleRun({ cron: '0 3 * * *' })],
])('[V19] one of a method that Guard calls by %s is refused: nothing would call it', async (_, guarded) => {
  class Scheduled {
    @guarded async tick(): Promise<void> {}
  }
  @Injectable()
  class Bare extends Scheduled {
    override async tick(): Promise<void> {}
  }
  const { message } = await bootError({ imports: imports() as never, providers: [Bare] });
  expect(message).toMatch(/Bare.tick overrides a method that is guarded, and is not: the schedule of the/);
  expect(message).toMatch(/write @SingleRun\(\) on it too, with its schedule, or without/);
});

test('[V19] so is one of a method under @Cron; without a schedule of its own it says that none is meant', async () => {
  @Injectable()
  class Bare extends Base {
    override async tick(): Promise<void> {}
  }
  const { message } = await bootError({ imports: imports() as never, providers: [Bare] });
  expect(message).toMatch(/Bare.tick overrides .* nothing would call it/);
  @Injectable()
  class Meant extends Base {
    @SingleRun() override async tick(): Promise<void> {}
  }
  const logger = new KeptLogger();
  const app = await started({ imports: imports() as never, providers: [Meant] }, logger);
  expect(logger.warned).toEqual([]);
  expect(app.get(GuardReport).entries).toMatchObject([{ method: 'Meant.tick', schedule: undefined }]);
});

test('[V19] one that no timer calls is told of, and super is guarded', async () => {
  abstract class Locking {
    @Locked() async tidy(): Promise<string> {
      return 'locked';
    }
  }
  @Injectable()
  class Bare extends Locking {
    override async tidy(): Promise<string> {
      return `bare and ${await super.tidy()}`;
    }
  }
  expect(await warned(Bare)).toEqual([
    'Bare.tidy overrides a method that is guarded, and is not: only what calls super.tidy() is',
  ]);
  const app = await started({ imports: imports() as never, providers: [Bare] });
  expect(await app.get(Bare).tidy()).toBe('bare and locked');
  @Injectable({ scope: Scope.REQUEST })
  class Short extends Bare {}
  const other = await started({ imports: imports() as never, providers: [Short] });
  expect(await (await other.resolve(Short)).tidy()).toBe('bare and locked');
});

test('[V19] one that is decorated by itself, or by a class between, is what it looks like', async () => {
  class Middle extends Base {
    @SingleRun({ window: '1d' }) override async tick(): Promise<void> {}
  }
  @Injectable()
  class Last extends Middle {}
  const logger = new KeptLogger();
  await started({ imports: imports() as never, providers: [Last] }, logger);
  expect(logger.warned).toEqual([]);
});
