/** Applications that do not come up, calls that come before one is up, and objects that it does not make. */
import { bindGuard, GuardError, Locked, memoryLocks, memoryState, SingleRun } from '@guard/core';
import { getGuardToken, GuardModule, type GuardModuleOptions } from '@guard/nestjs';
import { VirtualClock } from '@guard/testing';
import { Injectable, Module } from '@nestjs/common';
import { LazyModuleLoader, ModuleRef, NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { closeAll, guardOf, KeptLogger, started } from './support/app.js';

afterEach(closeAll);

const parts = (): GuardModuleOptions => ({ locks: memoryLocks(), state: memoryState() });
const QUIET = { abortOnError: false, logger: false } as const;

@Injectable()
class Failing {
  onApplicationBootstrap(): void {
    throw new Error('no cache');
  }
}

describe('[B109] an application that fails after its guards have started', () => {
  test('in a hook: closing it closes them', async () => {
    @Module({ imports: [GuardModule.forRoot(parts())], providers: [Failing] })
    class Application {}
    const app = await NestFactory.create(Application, QUIET);
    await expect(app.listen(0)).rejects.toThrow('no cache');
    expect(guardOf(app).health().state).toBe('started');
    await app.close();
    expect(guardOf(app).health().state).toBe('closed');
  });

  test('on a port that is taken: the same', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    @Module({ imports: [GuardModule.forRoot(parts())] })
    class Application {}
    const app = await NestFactory.create(Application, QUIET);
    const { port } = other.address() as AddressInfo;
    await expect(app.listen(port, '127.0.0.1')).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await app.close();
    expect(guardOf(app).health().state).toBe('closed');
    await new Promise((resolve) => other.close(resolve));
  });

  test('in a testing module, which refuses to close: its guard is closed by hand', async () => {
    const module = await Test.createTestingModule({
      imports: [GuardModule.forRoot(parts())],
      providers: [Failing],
    })
      .setLogger(new KeptLogger())
      .compile();
    await expect(module.init()).rejects.toThrow('no cache');
    const guard = module.get<ReturnType<typeof guardOf>>(getGuardToken());
    expect(guard.health().state).toBe('started');
    await guard.close();
    expect(guard.health().state).toBe('closed');
    await expect(module.close()).rejects.toThrow('no cache');
  });
});

describe('before the first onModuleInit', () => {
  test('a call in a constructor, or in the factory of another provider, throws not-bound', async () => {
    const early: unknown[] = [];
    @Injectable()
    class Rates {
      readonly first = this.load().catch((error: unknown) => early.push(error));
      @Locked() async load(): Promise<void> {}
      async onModuleInit(): Promise<void> {
        await this.load();
      }
    }
    const factory = {
      provide: 'warm',
      inject: [Rates],
      useFactory: (rates: Rates) => rates.load().catch((error: unknown) => early.push(error)),
    };
    const app = await started({ imports: [GuardModule.forRoot(parts())], providers: [Rates, factory] });
    await app.get(Rates).load();
    expect(early).toEqual([
      expect.objectContaining({ code: 'not-bound' }),
      expect.objectContaining({ code: 'not-bound' }),
    ]);
  });
});

test('what the container did not make at boot is not bound, and is bound by hand', async () => {
  class Rates {
    @SingleRun({ name: 'load', onDuplicate: 'throw' }) async load(): Promise<string> {
      return 'loaded';
    }
  }
  @Module({ providers: [Rates] })
  class Late {}
  const app = await started({ imports: [GuardModule.forRoot(parts())] });
  const late = await app.get(LazyModuleLoader).load(() => Late);
  const all = [late.get(Rates), await app.get(ModuleRef).create(Rates), new Rates()];
  for (const rates of all) {
    await expect(rates.load()).rejects.toMatchObject({ code: 'not-bound' });
    bindGuard(rates, guardOf(app));
    await expect(rates.load()).resolves.toBe('loaded');
  }
});

/** A store whose server does whatever `answer` does. */
function storeThat(answer: () => Promise<never>): ReturnType<typeof memoryState> {
  return new Proxy(memoryState(), {
    get: (target, name) => {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== 'function') return value;
      return name === 'close' ? (value.bind(target) as unknown) : answer;
    },
  });
}

describe('[B125] [S6] a backend that is away at boot', () => {
  test.each([
    ['hangs', () => new Promise<never>(() => undefined)],
    ['refuses', () => Promise.reject<never>(new GuardError('unavailable', 'the server is away'))],
  ])('ends it with unavailable within 20 s, if it %s, and the log names the guard', async (_, answer) => {
    const clock = new VirtualClock();
    const logger = new KeptLogger();
    const guard = GuardModule.forRoot({ locks: memoryLocks({ clock }), state: storeThat(answer), clock });
    let error: unknown;
    const boot = started({ imports: [guard] }, logger).catch((why: unknown) => (error = why));
    for (let second = 0; error === undefined && second < 20; second += 1) await clock.advance(1_000);
    expect(error).toMatchObject({ code: 'unavailable' });
    await boot;
    expect(logger.errors).toEqual([
      expect.stringMatching(/^the guard 'default' could not start: .*unavailable/),
    ]);
  });

  test('lets the application come up where other processes are the nodes', async () => {
    const state = storeThat(() => Promise.reject<never>(new Error('the server is away')));
    const app = await started({
      imports: [GuardModule.forRoot({ locks: memoryLocks(), state, start: 'elsewhere' })],
    });
    expect(guardOf(app).health().state).toBe('idle');
  });
});
