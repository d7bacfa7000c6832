/** Controllers: every order of decorators behaves the same, and a refusal has a status of its own. */
import { GuardError, Locked, memoryLocks, memoryState, SingleRun } from '@guard/core';
import { GuardExceptionFilter, GuardModule, GuardTestingModule } from '@guard/nestjs';
import {
  Body,
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Scope,
  SetMetadata,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, HttpAdapterHost } from '@nestjs/core';
import { map, type Observable } from 'rxjs';
import { closeAll, guardOf, serving, until } from './support/app.js';

afterEach(closeAll);

const guard = (): ReturnType<typeof GuardModule.forRoot> =>
  GuardModule.forRoot({ locks: memoryLocks(), state: memoryState(), defaults: { wait: 0 } });
const FILTER = { provide: APP_FILTER, useClass: GuardExceptionFilter };

@Injectable()
class RouteGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return (
      context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-user'] === 'ada'
    );
  }
}

@Injectable()
class Wrapping implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((answer: unknown) => ({ wrapped: answer })));
  }
}

const SINGLE = { key: (id: string) => id, onDuplicate: 'throw' } as const;

@Controller()
class Orders {
  prefix = 'order';
  @SingleRun(SINGLE)
  @Get('top/:id')
  @UseGuards(RouteGuard)
  @UseInterceptors(Wrapping)
  @SetMetadata('r', 1)
  async top(@Param('id') id: string, @Query('n', ParseIntPipe) n: number): Promise<string> {
    return `${this.prefix} ${id} ${n + 1}`;
  }
  @Get('middle/:id')
  @UseGuards(RouteGuard)
  @SingleRun(SINGLE)
  @UseInterceptors(Wrapping)
  @SetMetadata('r', 1)
  async middle(@Param('id') id: string, @Query('n', ParseIntPipe) n: number): Promise<string> {
    return `${this.prefix} ${id} ${n + 1}`;
  }
  @Get('bottom/:id')
  @UseGuards(RouteGuard)
  @UseInterceptors(Wrapping)
  @SetMetadata('r', 1)
  @SingleRun(SINGLE)
  async bottom(@Param('id') id: string, @Query('n', ParseIntPipe) n: number): Promise<string> {
    return `${this.prefix} ${id} ${n + 1}`;
  }
}

describe('[B115] [V17] a route with @SingleRun() on top, in the middle, and at the bottom', () => {
  test.each(['top', 'middle', 'bottom'])(
    '%s: routes, pipes, guards, interceptors and this are there',
    async (at) => {
      const { url } = await serving({ imports: [guard()], controllers: [Orders], providers: [FILTER] });
      const get = (path: string, user = 'ada'): Promise<Response> =>
        fetch(`${url}/${path}`, { headers: { 'x-user': user } });
      expect((await get(`${at}/7?n=1`, 'eve')).status).toBe(403);
      expect((await get(`${at}/7?n=x`)).status).toBe(400);
      const first = await get(`${at}/7?n=1`);
      expect([first.status, await first.json()]).toEqual([200, { wrapped: 'order 7 2' }]);
      expect((await get(`${at}/7?n=1`)).status).toBe(409);
      expect((await get(`${at}/8?n=1`)).status).toBe(200);
    },
  );

  test('name, length and every key of metadata are the same in all orders', () => {
    const { getMetadataKeys, getMetadata } = Reflect as never as {
      getMetadataKeys: (of: unknown) => string[];
      getMetadata: (key: string, of: unknown) => unknown;
    };
    const seen = (['top', 'middle', 'bottom'] as const).map((name) => {
      const method = Orders.prototype[name];
      return { keys: getMetadataKeys(method).sort(), length: method.length, r: getMetadata('r', method) };
    });
    expect(seen[0]!.keys).toEqual(
      expect.arrayContaining(['__guards__', '__interceptors__', 'path', 'method', 'r']),
    );
    expect(seen).toEqual([seen[0], seen[0], seen[0]]);
    expect(Orders.prototype.top.name).toBe('top');
  });

  test('a request-scoped controller is guarded too', async () => {
    @Controller({ scope: Scope.REQUEST })
    class Scoped {
      @Get('scoped/:id') @SingleRun(SINGLE) async get(@Param('id') id: string): Promise<string> {
        return id;
      }
    }
    const { url } = await serving({ imports: [guard()], controllers: [Scoped], providers: [FILTER] });
    expect((await fetch(`${url}/scoped/1`)).status).toBe(200);
    expect((await fetch(`${url}/scoped/1`)).status).toBe(409);
  });
});

describe('[B123] what a call that was not the one gets', () => {
  let finish: () => void;
  let begun: number;

  @Controller()
  class Sums {
    async sum(): Promise<number> {
      begun += 1;
      await new Promise<void>((resolve) => (finish = resolve));
      return 42;
    }
    @SingleRun({ key: 'throw', onDuplicate: 'throw' }) @Post('throw') throws(): Promise<number> {
      return this.sum();
    }
    @SingleRun({ key: 'result', onDuplicate: 'result', wait: '10s' })
    @Post('result')
    result(): Promise<number> {
      return this.sum();
    }
    @SingleRun({ key: 'skip', onDuplicate: 'skip' }) @Post('skip') async skip(): Promise<void> {
      await this.sum();
    }
    @Locked({ key: 'account' }) @Post('locked') async locked(@Body() body: { sum: number }): Promise<number> {
      return body.sum;
    }
  }

  beforeEach(() => {
    begun = 0;
  });

  async function twice(path: string): Promise<[Response, Response]> {
    const { url } = await serving({ imports: [guard()], controllers: [Sums], providers: [FILTER] });
    const post = (): Promise<Response> => fetch(`${url}/${path}`, { method: 'POST' });
    const first = post();
    await until(() => begun === 1);
    const second = post();
    if (path === 'result') setTimeout(() => finish(), 200);
    else void second.then(() => finish());
    return Promise.all([first, second]);
  }

  test('throw: 409, with the code and the reason, and no word of keys or causes', async () => {
    const [first, second] = await twice('throw');
    expect([first.status, await first.json()]).toEqual([201, 42]);
    expect([second.status, await second.json()]).toEqual([
      409,
      {
        statusCode: 409,
        error: 'Conflict',
        code: 'run-skipped',
        reason: 'running',
        message: 'This has been asked for already.',
      },
    ]);
  });

  test('result: the answer of the one that runs', async () => {
    const [first, second] = await twice('result');
    expect([await first.json(), await second.json()]).toEqual([42, 42]);
    expect(begun).toBe(1);
  });

  test('skip, where it was chosen: an answer without a body', async () => {
    const [, second] = await twice('skip');
    expect([second.status, await second.text()]).toEqual([201, '']);
  });

  test('a busy lock is 423, a closed guard 503, and anything else what it was', async () => {
    const { app, url } = await serving({ imports: [guard()], controllers: [Sums], providers: [FILTER] });
    const post = (): Promise<Response> =>
      fetch(`${url}/locked`, {
        method: 'POST',
        body: '{"sum":5}',
        headers: { 'content-type': 'application/json' },
      });
    expect(await (await post()).json()).toBe(5);
    const lock = await guardOf(app).acquire('account');
    const busy = await post();
    expect([busy.status, await busy.json()]).toEqual([423, expect.objectContaining({ code: 'lock-busy' })]);
    await lock.release();
    await guardOf(app).close();
    const closed = await post();
    expect([closed.status, await closed.json()]).toEqual([503, expect.objectContaining({ code: 'closed' })]);
  });

  test('the filter can be made by hand, and leaves other faults to others', async () => {
    @Controller()
    class Faulty {
      @Get('deadlock') deadlock(): never {
        throw new GuardError('would-deadlock', 'the key is secret');
      }
      @Get('skipped') skipped(): never {
        throw new GuardError('run-skipped', 'x', { reason: 'unavailable' });
      }
    }
    const { url } = await serving(
      { imports: [GuardTestingModule.forRoot()], controllers: [Faulty] },
      (made) => made.useGlobalFilters(new GuardExceptionFilter(made.get(HttpAdapterHost).httpAdapter)),
    );
    const deadlock = await fetch(`${url}/deadlock`);
    expect([deadlock.status, await deadlock.text()]).toEqual([500, expect.not.stringContaining('secret')]);
    expect((await fetch(`${url}/skipped`)).status).toBe(503);
  });
});
