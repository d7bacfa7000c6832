/**
 * A whole application on the packed packages: routes with a Swagger page, timers of @nestjs/schedule, a request-scoped
 * task, health, and a guard for tests. Each project beside this folder brings its own versions of Nest and its own way
 * of loading modules, and calls `check`, which rejects with what is wrong and says when it came to its end.
 */
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { currentRun, Locked, memoryLocks, memoryState, SingleRun } from '@guard/core';
import {
  getGuardOptionsToken,
  GuardExceptionFilter,
  GuardHealthIndicator,
  GuardModule,
  GuardRecorder,
  GuardReport,
  GuardTestingModule,
} from '@guard/nestjs';
import {
  Controller,
  Get,
  type INestApplication,
  Injectable,
  Logger,
  Module,
  Param,
  Post,
  Scope,
} from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { ApiOperation, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';

const ran: string[] = [];

@Injectable()
class Nightly {
  @SingleRun()
  @Cron('* * * * * *')
  async above(): Promise<void> {
    ran.push(`above ${currentRun()?.key}`);
  }
  @Cron('* * * * * *')
  @SingleRun()
  async below(): Promise<void> {
    ran.push(`below ${currentRun()?.key}`);
  }
}

@Injectable({ scope: Scope.REQUEST })
class PerRun {
  @SingleRun({ every: '500ms' })
  async tick(): Promise<void> {
    ran.push(`per run ${currentRun()?.key}`);
  }
  @Locked()
  async locked(): Promise<string> {
    return 'locked';
  }
}

@Controller()
class Orders {
  constructor(
    private readonly perRun: PerRun,
    private readonly health: HealthCheckService,
    private readonly guard: GuardHealthIndicator,
  ) {}

  @ApiOperation({ summary: 'charges an order' })
  @SingleRun({ key: (id: string) => id, onDuplicate: 'throw' })
  @Post('orders/:id/charge')
  async charge(@Param('id') id: string): Promise<{ readonly charged: string }> {
    return { charged: id };
  }
  @Get('locked')
  locked(): Promise<string> {
    return this.perRun.locked();
  }
  @Get('health')
  @HealthCheck()
  check(): Promise<unknown> {
    return this.health.check([() => this.guard.check('guard')]);
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    TerminusModule,
    GuardModule.forRoot({ locks: memoryLocks(), state: memoryState(), namespace: 'consumer' }),
  ],
  controllers: [Orders],
  providers: [Nightly, PerRun, { provide: APP_FILTER, useClass: GuardExceptionFilter }],
})
class AppModule {}

@Module({
  imports: [GuardModule.forRoot({ locks: memoryLocks(), state: memoryState() })],
  providers: [PerRun],
})
class Tested {}

/** Runs the application, and looks at all of it. */
export async function check(): Promise<void> {
  Logger.overrideLogger(false);
  const app = await NestFactory.create(AppModule, { abortOnError: false });
  await app.listen(0, '127.0.0.1');
  try {
    await checkServing(app);
  } finally {
    await app.close();
  }
  assert.equal(new Set(ran).size, ran.length);
  await checkTests();
  console.log('came to its end');
}

async function checkServing(app: INestApplication): Promise<void> {
  const url = await app.getUrl();
  const post = (path: string): Promise<Response> => fetch(`${url}/${path}`, { method: 'POST' });
  assert.equal(await (await post('orders/7/charge')).text(), '{"charged":"7"}');
  assert.equal((await post('orders/7/charge')).status, 409);
  assert.equal(await (await fetch(`${url}/locked`)).text(), 'locked');
  assert.equal((await fetch(`${url}/health`)).status, 200);
  const page = SwaggerModule.createDocument(app, new DocumentBuilder().build());
  assert.equal(page.paths['/orders/{id}/charge']?.post?.summary, 'charges an order');
  const { entries } = app.get(GuardReport);
  assert.deepEqual(entries.map(({ method }) => method).sort(), [
    'Nightly.above',
    'Nightly.below',
    'Orders.charge',
    'PerRun.locked',
    'PerRun.tick',
  ]);
  const all = ['above', 'below', 'per run'];
  for (let waits = 0; !all.every((name) => ran.some((one) => one.startsWith(name))); waits += 1) {
    assert.ok(waits < 200, `these ran: ${ran.join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function checkTests(): Promise<void> {
  const recorder = new GuardRecorder();
  const module = await Test.createTestingModule({ imports: [Tested] })
    .overrideProvider(getGuardOptionsToken())
    .useValue(GuardTestingModule.options({ off: true, recorder }))
    .compile();
  await module.init();
  const perRun = await module.resolve(PerRun);
  await Promise.all([perRun.tick(), perRun.tick()]);
  assert.deepEqual(recorder.completed(), ['PerRun.tick', 'PerRun.tick']);
  await module.close();
}
