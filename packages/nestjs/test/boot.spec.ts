/** What is told at boot, and everything that is refused there because it would silently not be guarded. */
import { Locked, memoryLocks, memoryState, SingleRun, createGuard } from '@guard/core';
import { GuardedBy, GuardModule, type GuardModuleOptions, GuardReport } from '@guard/nestjs';
import { Controller, Inject, Injectable, Post, type Provider, Scope, SetMetadata } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, Timeout } from '@nestjs/schedule';
import { bootError, closeAll, KeptLogger, started } from './support/app.js';

afterEach(closeAll);

const options = (more: Partial<GuardModuleOptions> = {}): GuardModuleOptions => ({
  locks: memoryLocks(),
  state: memoryState(),
  start: 'elsewhere',
  ...more,
});
const guard = (more?: Partial<GuardModuleOptions>): ReturnType<typeof GuardModule.forRoot> =>
  GuardModule.forRoot(options(more));

/** A decorator that puts another function in place and forgets what others left on the first. */
const forgetful: MethodDecorator = (_target, _key, descriptor) => {
  const inner = descriptor.value as unknown as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return inner.apply(this, args);
  } as never;
};

async function refused(provider: Provider, more?: Partial<GuardModuleOptions>): Promise<string> {
  return (await bootError({ imports: [guard(more)], providers: [provider] })).message;
}

async function warned(...providers: Provider[]): Promise<readonly string[]> {
  const logger = new KeptLogger();
  await started({ imports: [guard()], providers }, logger);
  return logger.warned;
}

test('the boot report lists every decorated method with its schedule, its lock and its run key', async () => {
  @Injectable()
  class Billing {
    @SingleRun() @Cron('0 3 * * *', { timeZone: 'Europe/Berlin' }) async settle(): Promise<void> {}
    @Interval(5_000) @SingleRun() async poll(): Promise<void> {}
    @SingleRun({ cron: '0 4 * * *' }) async report(): Promise<void> {}
    @SingleRun({ window: '1h', name: 'hourly' }) async hourly(): Promise<void> {}
    @SingleRun({ key: (id: string) => id, onDuplicate: 'result' }) async charge(id: string): Promise<string> {
      return id;
    }
    @SingleRun() async plain(): Promise<void> {}
    @Locked({ key: (id: string) => ['account', id] }) async transfer(_id: string): Promise<void> {}
    @Locked() async tidy(): Promise<void> {}
  }
  const logger = new KeptLogger();
  const app = await started(
    { imports: [guard({ namespace: 'shop', start: true })], providers: [Billing] },
    logger,
  );
  expect(app.get(GuardReport).lines()).toEqual([
    "Billing.settle · task 'Billing.settle' · @Cron 0 3 * * * (Europe/Berlin) · run key: the instant · lock: the task · guard 'default' · restartable",
    "Billing.poll · task 'Billing.poll' · @Interval 5000 ms · run key: the instant · lock: the task · guard 'default' · restartable",
    "Billing.report · task 'Billing.report' · cron 0 4 * * * (UTC) · run key: the instant · lock: the task · guard 'default' · restartable",
    "Billing.hourly · task 'hourly' · when called · run key: the window of 1h · lock: the task · guard 'default' · restartable",
    "Billing.charge · task 'Billing.charge' · when called · run key: of the arguments · lock: the task and key · guard 'default'",
    "Billing.plain · task 'Billing.plain' · when called · run key: none, calls only never overlap · lock: the task · guard 'default' · restartable",
    "Billing.transfer · lock · when called · lock: of the arguments · guard 'default'",
    "Billing.tidy · lock · when called · lock: Billing.tidy · guard 'default'",
  ]);
  expect(logger.logged).toEqual(
    expect.arrayContaining([
      "guard 'default': namespace 'shop', locks in memory, runs in memory, a started node",
      ...app.get(GuardReport).lines(),
    ]),
  );
});

describe('[V17] decorators around', () => {
  test('metadata that a decorator above lost is refused: the scheduler would find nothing', async () => {
    class Nightly {
      @forgetful
      @Cron('0 3 * * *')
      @SingleRun()
      async settle(): Promise<void> {}
    }
    const message = await refused(Nightly);
    expect(message).toMatch(/- Nightly.settle lost metadata \(.*SCHEDULE_CRON_OPTIONS.*\)/);
    expect(message).toMatch(/write that decorator below/);
  });

  test('a constructor that puts another function in place loses it too', async () => {
    class Nightly {
      constructor() {
        this.settle = this.settle.bind(this);
      }
      @Cron('0 3 * * *')
      @SingleRun()
      async settle(): Promise<void> {}
    }
    expect(await refused(Nightly)).toMatch(/Nightly.settle lost metadata/);
  });

  test('@Cron above a decorator that keeps nothing still names the run', async () => {
    class Nightly {
      @Cron('0 3 * * *', { timeZone: 'UTC' })
      @forgetful
      @SingleRun()
      async settle(): Promise<void> {}
    }
    const app = await started({ imports: [guard()], providers: [Nightly] });
    expect(app.get(GuardReport).entries[0]).toMatchObject({
      schedule: '@Cron 0 3 * * * (UTC)',
      runKey: 'the instant',
    });
  });

  test('an arrow function in a property is refused while the class is being defined', () => {
    expect(() => {
      class Nightly {
        // @ts-expect-error -- decorated as if it were a method
        @SingleRun() settle = async (): Promise<void> => undefined;
      }
      return Nightly;
    }).toThrow(/stands on the field settle: write it as an ordinary async method/);
  });
});

describe('[V18] [B117] classes whose instances come and go', () => {
  @Injectable({ scope: Scope.REQUEST })
  class Context {}

  test.each([
    ['@Cron', Cron('0 3 * * *')],
    ['@Interval', Interval(1_000)],
    ['@Timeout', Timeout(1_000)],
  ])(
    'under %s are refused, also where only something they depend on is request-scoped',
    async (_, schedule) => {
      @Injectable()
      class Nightly {
        constructor(@Inject(Context) readonly context: Context) {}
        @SingleRun() @schedule async settle(): Promise<void> {}
      }
      const { message } = await bootError({
        imports: [guard(), ScheduleModule.forRoot()],
        providers: [Context, Nightly],
      });
      expect(message).toMatch(/Nightly.settle is scheduled by @nestjs\/schedule, which never calls it/);
      expect(message).toMatch(
        /request-scoped, or something it depends on is; give @SingleRun\(\) the schedule/,
      );
    },
  );

  test('and so are transient ones', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Nightly {
      @SingleRun() @Cron('0 3 * * *') async settle(): Promise<void> {}
    }
    expect(await refused(Nightly)).toMatch(/the class is transient/);
  });
});

describe('[V19] names and inheritance', () => {
  class Base {
    @SingleRun({ window: '1d' }) async settle(): Promise<void> {}
  }

  test('two methods with one task name are refused, also where no node could run them again', async () => {
    class One {
      @SingleRun({ name: 'charge', key: (id: string) => id }) async charge(_id: string): Promise<void> {}
    }
    class Two {
      @SingleRun({ name: 'charge', key: (id: string) => id }) async pay(_id: string): Promise<void> {}
    }
    const { message } = await bootError({ imports: [guard()], providers: [One, Two] });
    expect(message).toMatch(
      /One.charge and Two.pay are both the task 'charge': give each a 'name' of its own/,
    );
  });

  test('two classes that inherit a method cannot share its task', async () => {
    class Left extends Base {}
    class Right extends Base {}
    const { message } = await bootError({ imports: [guard()], providers: [Left, Right] });
    expect(message).toMatch(/'Base.settle' would be run by either Left \(Left of .*\) or Right/);
  });

  test('overrides that are decorated are tasks of their own', async () => {
    class Left extends Base {
      @SingleRun({ window: '1d' }) override async settle(): Promise<void> {}
    }
    class Right extends Base {
      @SingleRun({ window: '1d' }) override async settle(): Promise<void> {}
    }
    const app = await started({ imports: [guard()], providers: [Base, Left, Right] });
    expect(app.get(GuardReport).entries.map(({ name }) => name)).toEqual([
      'Base.settle',
      'Left.settle',
      'Right.settle',
    ]);
  });

  test('an override that is not is told of', async () => {
    class Bare extends Base {
      override async settle(): Promise<void> {}
      @Locked() async other(): Promise<void> {}
    }
    expect(await warned(Bare)).toEqual([
      expect.stringMatching(/^Bare.settle overrides a method that is guarded/),
    ]);
  });

  test('and so is a property that hides a method', async () => {
    class Hiding {
      constructor() {
        Object.assign(this, { settle: async () => undefined });
      }
      @SingleRun({ window: '1d' }) async settle(): Promise<void> {}
    }
    expect(await warned(Hiding)).toEqual([expect.stringMatching(/^Hiding.settle is hidden by a property/)]);
  });
});

describe('what needs a started node', () => {
  class Retried {
    @SingleRun({ retry: { attempts: 3 }, onCrash: 'hold', window: '1d' }) async settle(): Promise<void> {}
  }
  class Scheduled {
    @SingleRun({ every: '1m' }) async settle(): Promise<void> {}
  }

  test('is refused where nobody starts one', async () => {
    expect(await refused(Retried, { start: false })).toMatch(
      /Retried.settle has retry, onCrash, and no node of the guard 'default' is started: set its 'start'/,
    );
    expect(await refused(Scheduled, { start: false })).toMatch(/Scheduled.settle has every/);
  });

  test('is told of where the node is started for other tasks only', async () => {
    class Other {
      @SingleRun({ name: 'other', every: '1h' }) async other(): Promise<void> {}
      @SingleRun({ name: 'called' }) async called(): Promise<void> {}
    }
    const logger = new KeptLogger();
    const imports = [guard({ start: { tasks: ['other'] } })];
    await started({ imports, providers: [Other, Scheduled, Retried] }, logger);
    expect(logger.logged).toContainEqual(expect.stringMatching(/, a started node for 'other' only$/));
    expect(logger.warned).toEqual([
      expect.stringMatching(/^Scheduled.settle has every, .* is started for 'other' only: nobody begins/),
      expect.stringMatching(
        /^Retried.settle has retry, onCrash, .*; name 'Retried.settle' in 'start.tasks' where/,
      ),
    ]);
  });

  test('is taken where another process does', async () => {
    const app = await started({ imports: [guard({ start: 'elsewhere' })], providers: [Retried, Scheduled] });
    expect(app.get(GuardReport).entries).toHaveLength(2);
  });
});

describe('also refused', () => {
  test('a class whose guard is not registered', async () => {
    @GuardedBy('fast')
    class Rates {
      @Locked() async load(): Promise<void> {}
    }
    expect(await refused(Rates)).toMatch(/Rates needs the guard 'fast', and registered are: 'default'/);
    const bare = await bootError({ imports: [GuardModule], providers: [Rates] });
    expect(bare.message).toMatch(/registered are: none; import GuardModule.forRoot/);
  });

  test('a single run where there is no store for runs', async () => {
    class Billing {
      @SingleRun() async settle(): Promise<void> {}
    }
    const { message } = await bootError({
      imports: [GuardModule.forRoot({ locks: memoryLocks() })],
      providers: [Billing],
    });
    expect(message).toMatch(/Billing.settle runs once, and the guard 'default' has nowhere to keep runs/);
  });

  test('[B123] a route that would answer a skipped call as if it had run', async () => {
    @Controller()
    class Billing {
      @Post('settle') @SingleRun() async settle(): Promise<void> {}
      @SingleRun({ onDuplicate: 'skip' }) @Post('meant') async meant(): Promise<void> {}
    }
    const { message } = await bootError({ imports: [guard()], controllers: [Billing] });
    expect(message).toMatch(
      /Billing.settle answers a route, and a skipped call would answer as if it had run/,
    );
    expect(message).not.toMatch(/Billing.meant/);
  });

  test.each([
    ['an interval that is too short', Interval(50), /every must be at least 100 ms/],
    ['half an hour of offset', Cron('0 3 * * *', { utcOffset: 330 }), /utcOffset .* whole hours/],
    ['no expression', Cron('whenever'), /cron/],
  ])('a schedule that cannot name runs: %s, unless they are named otherwise', async (_, schedule, why) => {
    class Nightly {
      @SingleRun() @schedule async settle(): Promise<void> {}
      @schedule @SingleRun({ window: '1d' }) async named(): Promise<void> {}
      @schedule @Locked() async locked(): Promise<void> {}
    }
    const message = await refused(Nightly);
    expect(message).toMatch(/Nightly.settle has a schedule .* whose instants cannot name its runs: /);
    expect(message).toMatch(why);
    expect(message).toMatch(/give @SingleRun\(\) a 'key' or a 'window'/);
    expect(message.split('\n- ')).toHaveLength(2);
  });

  test('everything at once, each in a line', async () => {
    class Billing {
      @forgetful @SetMetadata('role', 'admin') @SingleRun() async settle(): Promise<void> {}
      @SingleRun({ retry: { attempts: 2 } }) async retried(): Promise<void> {}
    }
    const message = await refused(Billing, { start: false });
    expect(message.split('\n- ')).toHaveLength(3);
  });
});

test('providers that are odd are passed by, and no getter is run', async () => {
  class Odd {
    get never(): string {
      throw new Error('a getter was run');
    }
    @Locked({ guard: createGuard({ locks: memoryLocks() }) }) async own(): Promise<void> {}
  }
  const values = [
    null,
    0,
    'text',
    Object.create(null),
    { constructor: 'text' },
    { constructor: null },
    () => 1,
    new Proxy(
      {},
      {
        getOwnPropertyDescriptor: () => {
          throw new Error('a proxy was looked into');
        },
      },
    ),
  ];
  const app = await started({
    imports: [guard()],
    providers: [
      Odd,
      ...values.map((useValue, index) => ({ provide: `odd ${index}`, useValue: useValue as unknown })),
    ],
  });
  expect(app.get(GuardReport).entries).toEqual([
    expect.objectContaining({ method: 'Odd.own', guard: undefined }),
  ]);
});
