/** The exception filter where no HTTP is: every transport answers as it does without the filter, and nothing ends. */
import { GuardError, Locked, memoryLocks } from '@guard/core';
import { GuardExceptionFilter, GuardModule } from '@guard/nestjs';
import { Controller, Get, Logger, UseFilters } from '@nestjs/common';
import { ExternalContextCreator } from '@nestjs/core';
import { closeAll, guardOf, KeptLogger, serving, started } from './support/app.js';

afterEach(closeAll);

const busy = new GuardError('lock-busy', 'the key is secret');

/** The host of a call, as far as filters look at it. */
function hostOf(type: string, client: object = {}): never {
  const socket = { getClient: () => client, getPattern: () => 'charge', getData: () => ({ id: 7 }) };
  return { getType: () => type, switchToWs: () => socket } as never;
}

const ANSWER = {
  status: 'error',
  message: 'Internal server error',
  cause: { pattern: 'charge', data: { id: 7 } },
};

describe('[B125] a filter that throws would leave the caller without an answer, or end the process', () => {
  test.each(['rpc', 'graphql'])('%s: nothing is answered, so that Nest answers by itself', (type) => {
    expect(new GuardExceptionFilter().catch(busy, hostOf(type))).toBeUndefined();
  });

  test('a resolver gets the error as it is without the filter', async () => {
    @UseFilters(GuardExceptionFilter)
    class Accounts {
      @Locked({ key: 'account', wait: 0 }) async charge(): Promise<string> {
        return 'charged';
      }
    }
    const guard = GuardModule.forRoot({ locks: memoryLocks() });
    const app = await started({ imports: [guard], providers: [Accounts] });
    const accounts = app.get(Accounts);
    const charge = app
      .get(ExternalContextCreator, { strict: false })
      .create(
        accounts,
        accounts.charge,
        'charge',
        undefined,
        undefined,
        undefined,
        undefined,
        { guards: true, interceptors: true, filters: true },
        'graphql',
      );
    const lock = await guardOf(app).acquire('account');
    await expect(charge()).rejects.toMatchObject({ code: 'lock-busy' });
    await lock.release();
    await expect(charge()).resolves.toBe('charged');
  });

  test('a socket of Socket.IO is told as Nest tells it, and so is a plain one', () => {
    const logger = new KeptLogger();
    Logger.overrideLogger(logger);
    const emitted: unknown[] = [];
    const sent: string[] = [];
    const filter = new GuardExceptionFilter();
    filter.catch(busy, hostOf('ws', { emit: (...told: unknown[]) => void emitted.push(told) }));
    const plain = {
      readyState: 1,
      emit: () => void emitted.push('here'),
      send: (text: string) => void sent.push(text),
    };
    filter.catch(busy, hostOf('ws', plain));
    expect(emitted).toEqual([['exception', ANSWER]]);
    expect(sent.map((text) => JSON.parse(text) as unknown)).toEqual([{ event: 'exception', data: ANSWER }]);
    expect(logger.errors).toEqual([busy, busy]);
  });
});

test('an error of another copy of @guard/core has the same status', async () => {
  // What another build throws: no instance of this one's class, and with its brand.
  const foreign = Object.assign(new Error('busy'), { code: 'lock-busy' });
  Object.defineProperty(foreign, Symbol.for('@guard/core/error@1'), { value: true });
  @Controller()
  class Library {
    @Get() charge(): never {
      throw foreign;
    }
  }
  const { url } = await serving({ controllers: [Library] }, (app) =>
    app.useGlobalFilters(new GuardExceptionFilter()),
  );
  expect(foreign).not.toBeInstanceOf(GuardError);
  expect((await fetch(url)).status).toBe(423);
});
