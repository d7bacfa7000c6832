/** Registering guards, and letting go of them. */
import { join } from 'node:path';
import {
  createGuard,
  type Guard,
  GuardError,
  Locked,
  memoryLocks,
  memoryState,
  SingleRun,
} from '@guard/core';
import { GuardedBy, getGuardToken, GuardModule, GuardReport, InjectGuard } from '@guard/nestjs';
import { startWorker } from '@guard/testing';
import { Global, Inject, Injectable, Module } from '@nestjs/common';
import { bootError, closeAll, compiled, guardOf, KeptLogger, started } from './support/app.js';

afterEach(closeAll);

const parts = (): { locks: ReturnType<typeof memoryLocks>; state: ReturnType<typeof memoryState> } => ({
  locks: memoryLocks(),
  state: memoryState(),
});

@Injectable()
class Billing {
  settled = 0;
  constructor(@InjectGuard() readonly guard: Guard) {}
  @SingleRun({ window: '1d' })
  async settle(): Promise<void> {
    this.settled += 1;
  }
}

describe('GuardModule', () => {
  test('binds what is decorated, and injects the guard', async () => {
    const app = await started({
      imports: [GuardModule.forRoot({ ...parts(), namespace: 'billing' })],
      providers: [Billing],
    });
    const billing = app.get(Billing);
    await billing.settle();
    await billing.settle();
    expect(billing.settled).toBe(1);
    expect(billing.guard).toBe(guardOf(app));
    expect(billing.guard.namespace).toBe('billing');
    expect(billing.guard.health().state).toBe('started');
  });

  test('takes options that need other providers, also asynchronously', async () => {
    @Global()
    @Module({ providers: [{ provide: 'NAMESPACE', useValue: 'configured' }], exports: ['NAMESPACE'] })
    class Config {}
    const module = GuardModule.forRootAsync({
      imports: [Config],
      inject: ['NAMESPACE'],
      useFactory: async (namespace: string) => ({ ...parts(), namespace, start: false }),
    });
    const app = await started({ imports: [module] });
    expect(guardOf(app).namespace).toBe('configured');
    expect(guardOf(app).health().state).toBe('idle');
  });

  test('keeps several guards apart: each class has the one that it names', async () => {
    @GuardedBy('fast')
    class Rates {
      @Locked({ key: 'rates' }) async load(): Promise<boolean> {
        return (
          (await guardOf(app, 'fast').inspect('rates')).held && !(await guardOf(app).inspect('rates')).held
        );
      }
    }
    class MoreRates extends Rates {}
    const app = await started({
      imports: [GuardModule.forRoot(parts()), GuardModule.forRoot({ name: 'fast', locks: memoryLocks() })],
      providers: [Rates, MoreRates, Billing],
    });
    await expect(app.get(Rates).load()).resolves.toBe(true);
    await expect(app.get(MoreRates).load()).resolves.toBe(true);
    expect(app.get(GuardReport).entries.map(({ guard, method }) => `${guard}: ${method}`)).toEqual(
      expect.arrayContaining(['fast: Rates.load', 'fast: MoreRates.load', 'default: Billing.settle']),
    );
  });

  test('refuses options that are none, before anything is made', () => {
    expect(() => GuardModule.forRoot(undefined as never)).toThrow(/must be the options/);
    expect(() => GuardModule.forRoot({ ...parts(), name: '' })).toThrow(/must be the name/);
    expect(() => GuardModule.forRootAsync({} as never)).toThrow(/useFactory/);
    expect(() => GuardModule.forRootAsync({ useFactory: parts, useClass: 1 } as never)).toThrow(/useClass/);
  });

  test('what createGuard refuses ends the boot with its own message', async () => {
    const error = await bootError({ imports: [GuardModule.forRoot({ ...parts(), ttl: '1s' } as never)] });
    expect(GuardError.is(error, 'invalid-argument')).toBe(true);
    expect(error.message).toMatch(/ttl/);
    const start = await bootError({ imports: [GuardModule.forRoot({ ...parts(), start: 'no' as never })] });
    expect(start.message).toMatch(/start/);
  });
});

describe('[B118] the module more than once', () => {
  test('one registration that two modules import is one guard, and each run is one run', async () => {
    const guard = GuardModule.forRoot(parts());
    @Module({ imports: [guard], providers: [Billing], exports: [Billing] })
    class One {}
    @Module({ imports: [guard, One] })
    class Two {}
    const app = await started({ imports: [One, Two, guard, GuardModule] });
    await Promise.all([app.get(Billing).settle(), app.get(Billing).settle()]);
    expect(app.get(Billing).settled).toBe(1);
    expect(app.get(GuardReport).entries).toHaveLength(1);
  });

  test('two registrations of one name are refused, and say how to go on', async () => {
    @Module({ imports: [GuardModule.forRoot(parts())] })
    class One {}
    const error = await bootError({ imports: [One, GuardModule.forRoot(parts())] });
    expect(error.message).toMatch(/'default' is registered 2 times: call GuardModule.forRoot once/);
  });

  test('an alias is the same instance; a class that two modules provide is told of, and runs each occurrence once', async () => {
    @Module({ providers: [Billing], exports: [Billing] })
    class One {}
    const logger = new KeptLogger();
    const alias = { provide: 'alias', useExisting: Billing };
    const app = await started(
      { imports: [GuardModule.forRoot(parts()), One], providers: [Billing, alias] },
      logger,
    );
    expect(logger.warned.filter((line) => line.includes('provided 2 times'))).toHaveLength(1);
    const [one, two] = [app.get<Billing>('alias'), app.select(One).get(Billing)];
    expect(one).not.toBe(two);
    await Promise.all([one.settle(), two.settle()]);
    expect(one.settled + two.settled).toBe(1);
  });

  test('two instances that are meant to differ cannot share a task', async () => {
    const make = (name: string): object => ({
      provide: name,
      useFactory: () => new Billing(createGuard(parts())),
    });
    const error = await bootError({
      imports: [GuardModule.forRoot(parts())],
      providers: [make('EU'), make('US')] as never,
    });
    expect(error.message).toMatch(
      /'Billing.settle' would be run by either Billing \(EU of .*\) or Billing \(US of/,
    );
  });
});

describe('[B109] an application lets go', () => {
  test('after a module that was only compiled, and after one that was initialised', async () => {
    const module = await compiled({ imports: [GuardModule.forRoot(parts())], providers: [Billing] });
    await module.close();
    expect(guardOf(module).health().state).toBe('closed');
    const app = await started({ imports: [GuardModule.forRoot(parts())], providers: [Billing] });
    await app.close();
    expect(guardOf(app).health().state).toBe('closed');
  });

  test.each([
    ['a factory throws', { provide: 'x', useFactory: () => Promise.reject(new Error('the original')) }],
    [
      'onModuleInit throws',
      { provide: 'x', useValue: { onModuleInit: () => Promise.reject(new Error('the original')) } },
    ],
  ])('%s: the user sees that error', async (_, provider) => {
    const error = await bootError({
      imports: [GuardModule.forRoot(parts())],
      providers: [Billing, provider],
    });
    expect(error.message).toBe('the original');
  });

  test('forRootAsync rejects: the user sees that error', async () => {
    const module = GuardModule.forRootAsync({ useFactory: () => Promise.reject(new Error('the original')) });
    expect((await bootError({ imports: [module] })).message).toBe('the original');
  });

  test('in each of these cases a process ends by itself', async () => {
    const worker = startWorker<readonly string[]>(join(__dirname, 'process', 'lets-go.ts'));
    const ends = ['closed', 'closed', 'factory', 'init', 'async', 'bootstrap: started, closed'];
    await expect(worker.finish()).resolves.toEqual(ends);
  });

  test('one of several guards cannot start: the user sees that error, and the others are closed', async () => {
    const others: Guard[] = [];
    @Injectable()
    class Both {
      constructor(@InjectGuard('other') other: Guard) {
        others.push(other);
      }
    }
    const error = await bootError({
      imports: [
        GuardModule.forRoot({ ...parts(), start: { tasks: ['nobody'] } }),
        GuardModule.forRoot({ ...parts(), name: 'other' }),
      ],
      providers: [Both],
    });
    expect(error).toMatchObject({ code: 'invalid-argument' });
    expect(others[0]?.health().state).toBe('closed');
  });

  test('guards close before the hook in which clients are closed, and after work that was going on', async () => {
    const order: string[] = [];
    @Injectable()
    class Client {
      onApplicationShutdown(): void {
        order.push(`client closed, guard ${guardOf(app).health().state}`);
      }
    }
    @Injectable()
    class Slow {
      constructor(@Inject(Client) readonly client: Client) {}
      @SingleRun() async run(): Promise<void> {
        await new Promise((resolve) => setTimeout(resolve, 200));
        order.push('work done');
      }
    }
    const app = await started({ imports: [GuardModule.forRoot(parts())], providers: [Client, Slow] });
    const running = app.get(Slow).run();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await app.close();
    await running;
    expect(order).toEqual(['work done', 'client closed, guard closed']);
    await expect(app.get(Slow).run()).rejects.toMatchObject({ code: 'closed' });
  });
});

test('the token of a guard is the same in every copy of the package', () => {
  expect(getGuardToken()).toBe(Symbol.for('@guard/nestjs/guard/default'));
});
