/** Several guards in one application, each on backends of its own: locks on Redis or etcd, runs in Postgres. */
import { currentLock, currentRun, type Guard, Locked, SingleRun } from '@guard/core';
import { etcdLocks } from '@guard/etcd';
import { GuardedBy, GuardHealthIndicator, GuardModule, GuardReport, InjectGuard } from '@guard/nestjs';
import { redisLocks } from '@guard/redis';
import { fromIoredis } from '@guard/redis/ioredis';
import {
  type EtcdGroup,
  type SqlServer,
  startEtcd,
  startPostgres,
  startRedis,
  type TestServer,
} from '@guard/testing/servers';
import { ensureSchema, typeormRuns } from '@guard/typeorm';
import { Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import type { TestingModule } from '@nestjs/testing';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { Etcd3 } from 'etcd3';
import { Redis } from 'ioredis';
import type { DataSource } from 'typeorm';
import { closeAll, guardOf, KeptLogger, started } from '../support/app.js';

let [redis, etcd, postgres]: [TestServer?, EtcdGroup?, SqlServer?] = [];
beforeAll(async () => {
  [redis, etcd, postgres] = await Promise.all([startRedis(), startEtcd(), startPostgres()]);
}, 60_000);
afterAll(() => Promise.all([redis?.stop(), etcd?.stop(), postgres?.stop()]));
afterEach(closeAll);

const CLIENTS = Symbol('clients');
interface Clients {
  readonly redis: Redis;
  readonly etcd: Etcd3;
}
const settled: string[] = [];

@Injectable()
class Billing {
  constructor(@InjectGuard() readonly guard: Guard) {}

  @SingleRun({ key: (day: string) => day, onDuplicate: 'result', wait: '10s' })
  async settle(day: string): Promise<string> {
    settled.push(day);
    return `${day} ${currentRun()!.task}`;
  }
}

@Injectable()
@GuardedBy('etcd')
class Rates {
  constructor(@InjectGuard('etcd') readonly guard: Guard) {}

  @Locked({ key: (id: string) => ['rate', id], wait: '10s' })
  async load(id: string): Promise<bigint> {
    const [here, there] = await Promise.all([
      this.guard.inspect(['rate', id]),
      guardOf(app).inspect(['rate', id]),
    ]);
    expect([here.held, there.held]).toEqual([true, false]);
    return currentLock()!.token;
  }

  @SingleRun({ key: (id: string) => id, onDuplicate: 'result', wait: '10s' })
  async publish(id: string): Promise<string> {
    settled.push(id);
    return `published ${id}`;
  }
}
let app: TestingModule;

/** Clients of the application's own, which it closes after its guards. */
@Module({
  providers: [
    {
      provide: CLIENTS,
      useFactory: () => ({ redis: new Redis(redis!.url), etcd: new Etcd3({ hosts: [...etcd!.urls] }) }),
    },
  ],
  exports: [CLIENTS],
})
class ClientsModule implements OnApplicationShutdown {
  constructor(@Inject(CLIENTS) private readonly clients: Clients) {}
  onApplicationShutdown(): void {
    this.clients.redis.disconnect();
    this.clients.etcd.close();
  }
}

function replica(logger = new KeptLogger()): Promise<TestingModule> {
  const inject = [CLIENTS, getDataSourceToken()];
  const imports = [ClientsModule];
  return started(
    {
      imports: [
        TypeOrmModule.forRoot({ type: 'postgres', url: postgres!.url }),
        GuardModule.forRootAsync({
          ...{ imports, inject },
          useFactory: async (clients: Clients, dataSource: DataSource) => {
            await ensureSchema(dataSource);
            return {
              locks: redisLocks(fromIoredis(clients.redis)),
              runs: typeormRuns(dataSource),
              namespace: 'several',
            };
          },
        }),
        GuardModule.forRootAsync({
          ...{ name: 'etcd', imports, inject },
          useFactory: (clients: Clients, dataSource: DataSource) => ({
            locks: etcdLocks(clients.etcd),
            runs: typeormRuns(dataSource),
            namespace: 'several-etcd',
          }),
        }),
      ],
      providers: [Billing, Rates],
    },
    logger,
  );
}

test('[S1] [S7] each class is served by the guard that it names, on every replica', async () => {
  const logger = new KeptLogger();
  app = await replica(logger);
  const other = await replica();
  expect(logger.logged).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^guard 'default': .* locks in redis:.*, runs in postgres.*, a started node$/),
      expect.stringMatching(/^guard 'etcd': .* locks in etcd:.*, runs in postgres.*, a started node$/),
    ]),
  );
  expect(app.get(GuardReport).entries.map(({ method, guard }) => `${guard}: ${method}`)).toEqual([
    'default: Billing.settle',
    'etcd: Rates.load',
    'etcd: Rates.publish',
  ]);

  const [billing, rates] = [app.get(Billing), app.get(Rates)];
  expect(billing.guard).not.toBe(rates.guard);
  const answers = [billing.settle('monday'), other.get(Billing).settle('monday')];
  expect(await Promise.all(answers)).toEqual(['monday Billing.settle', 'monday Billing.settle']);
  const published = [rates.publish('eur'), other.get(Rates).publish('eur')];
  expect(await Promise.all(published)).toEqual(['published eur', 'published eur']);
  expect(settled.sort()).toEqual(['eur', 'monday']);
  expect(await rates.load('eur')).toBeLessThan(await rates.load('eur'));

  const rows: unknown = await app
    .get<DataSource>(getDataSourceToken())
    .query('SELECT count(*)::int AS n FROM guard_run');
  expect(rows).toEqual([{ n: 2 }]);
  const health = app.get(GuardHealthIndicator);
  const checked = [await health.check('guard'), await health.check('guard', { name: 'etcd' })];
  expect(checked.map(({ guard }) => guard)).toEqual([
    expect.objectContaining({ status: 'up', locks: 'up', runs: 'up' }),
    expect.objectContaining({ status: 'up', locks: 'up', runs: 'up' }),
  ]);
});

test('[L3] all guards have closed before the clients of both are', async () => {
  const logger = new KeptLogger();
  app = await replica(logger);
  const guards = [guardOf(app), guardOf(app, 'etcd')];
  await app.close();
  expect(guards.map((guard) => guard.health().state)).toEqual(['closed', 'closed']);
  expect(logger.errors).toEqual([]);
});
