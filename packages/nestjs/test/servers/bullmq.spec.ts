/** Processors of BullMQ on a real Redis, in two replicas of an application whose guard is on that Redis too. */
import { currentRun, Locked, memoryLocks, SingleRun } from '@guard/core';
import { GuardModule, GuardReport } from '@guard/nestjs';
import { redisLocks, redisState } from '@guard/redis';
import { fromIoredis } from '@guard/redis/ioredis';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { BullModule, getQueueToken, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, type OnApplicationShutdown, Scope } from '@nestjs/common';
import type { TestingModule } from '@nestjs/testing';
import { type Job, type JobsOptions, type Queue, QueueEvents } from 'bullmq';
import { Redis } from 'ioredis';
import { closeAll, guardOf, KeptLogger, started, until } from '../support/app.js';

const FINISHED_MS = 30_000;
/** A lock of the queue that is not renewed: as after a frozen process, the job is delivered again while it is done. */
const STALLS = { lockDuration: 1_000, lockRenewTime: 60_000, stalledInterval: 300, maxStalledCount: 20 };

let server: TestServer;
let prefix: string;
let tests = 0;
beforeAll(async () => {
  server = await startRedis();
}, 60_000);
afterAll(() => server.stop());

const begun: string[] = [];
const done: string[] = [];
const inside = new Map<string, number>();
let logger: KeptLogger;
beforeEach(() => {
  prefix = `bull-${process.pid}-${(tests += 1)}`;
  begun.length = 0;
  done.length = 0;
  inside.clear();
  logger = new KeptLogger();
});
afterEach(closeAll);

interface Order {
  readonly id: string;
  readonly takesMs?: number;
  readonly failsFirst?: boolean;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

@Processor('invoices', STALLS)
class Invoices extends WorkerHost {
  readonly heard: string[] = [];

  @SingleRun({ name: 'invoice', key: ({ data }: Job<Order>) => data.id, onDuplicate: 'result', wait: '20s' })
  override async process({ data, attemptsMade }: Job<Order>): Promise<string> {
    begun.push(data.id);
    await sleep(data.takesMs ?? 10);
    if (data.failsFirst === true && attemptsMade === 0) throw new Error(`${data.id} is out of paper`);
    done.push(String(currentRun()?.key));
    return `receipt of ${data.id}`;
  }

  @OnWorkerEvent('completed') completed({ data }: Job<Order>): void {
    this.heard.push(data.id);
  }

  /** A job that was delivered again is not the first one's to finish; without a listener it is printed. */
  @OnWorkerEvent('error') error(): void {}
}

@Processor('transfers', { concurrency: 4 })
class Transfers extends WorkerHost {
  @Locked({ key: ({ data }: Job<Order>) => ['account', data.id], wait: '20s' })
  override async process({ data: { id } }: Job<Order>): Promise<number> {
    const among = (inside.get(id) ?? 0) + 1;
    inside.set(id, among);
    await sleep(30);
    inside.set(id, inside.get(id)! - 1);
    return among;
  }
}

@Processor({ name: 'reports', scope: Scope.REQUEST })
class Reports extends WorkerHost {
  @SingleRun({ name: 'report', key: ({ data }: Job<Order>) => data.id, onDuplicate: 'result', wait: '20s' })
  override async process({ data }: Job<Order>): Promise<string> {
    done.push(String(currentRun()?.key));
    return `report of ${data.id}`;
  }
}

async function replica(type: new () => WorkerHost): Promise<TestingModule> {
  const name = type.name.toLowerCase();
  const client = new Redis(server.url);
  @Injectable()
  class Client implements OnApplicationShutdown {
    onApplicationShutdown(): void {
      client.disconnect();
    }
  }
  return started(
    {
      imports: [
        BullModule.forRoot({ connection: connection(), prefix }),
        BullModule.registerQueue({ name }),
        GuardModule.forRoot({
          locks: redisLocks(fromIoredis(client)),
          state: redisState(fromIoredis(client)),
          namespace: prefix,
        }),
      ],
      providers: [type, Client],
    },
    logger,
  );
}

function connection(): { host: string; port: number; username?: string; password?: string } {
  const { hostname, port, username, password } = new URL(server.url);
  return {
    host: hostname,
    port: Number(port),
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
  };
}

/** Adds jobs one after another, and waits for what the queue says became of each. */
async function results(
  app: TestingModule,
  name: string,
  orders: readonly Order[],
  options: JobsOptions = {},
) {
  const queue = app.get<Queue>(getQueueToken(name));
  const events = new QueueEvents(name, { connection: connection(), prefix });
  try {
    await events.waitUntilReady();
    const jobs: Job[] = [];
    for (const order of orders) jobs.push(await queue.add('job', order, options));
    return await Promise.all<unknown>(jobs.map((job) => job.waitUntilFinished(events, FINISHED_MS)));
  } finally {
    await events.close();
  }
}

test('[V17] the worker finds the decorated method, and the handlers of its events stay', async () => {
  const app = await replica(Invoices);
  expect(app.get(GuardReport).entries.map(({ method, name }) => [method, name])).toEqual([
    ['Invoices.process', 'invoice'],
  ]);
  expect(await results(app, 'invoices', [{ id: '1' }])).toEqual(['receipt of 1']);
  await until(() => app.get(Invoices).heard.includes('1'));
  expect((await guardOf(app).runs.get('invoice', '1'))?.run.state).toBe('completed');
});

test('[S7] two jobs for one order, on two replicas at once and again later, are one piece of work', async () => {
  const [one] = await Promise.all([replica(Invoices), replica(Invoices)]);
  const orders = [{ id: '1', takesMs: 300 }, { id: '1', takesMs: 300 }, { id: '2' }];
  expect(await results(one, 'invoices', orders)).toEqual(['receipt of 1', 'receipt of 1', 'receipt of 2']);
  expect(await results(one, 'invoices', [{ id: '1' }])).toEqual(['receipt of 1']);
  expect([...done].sort()).toEqual(['1', '2']);
});

test('[S7] a job that stalls and is delivered again while it is being done is done once', async () => {
  const [one] = await Promise.all([replica(Invoices), replica(Invoices)]);
  const stalled: string[] = [];
  const events = new QueueEvents('invoices', { connection: connection(), prefix });
  events.on('stalled', ({ jobId }) => stalled.push(jobId));
  await events.waitUntilReady();
  expect(await results(one, 'invoices', [{ id: '1', takesMs: 3_000 }])).toEqual(['receipt of 1']);
  await events.close();
  expect(stalled.length).toBeGreaterThan(0);
  expect(done).toEqual(['1']);
});

test('[S8] an error of the work reaches the queue as it is, and its next attempt does the job', async () => {
  const app = await replica(Invoices);
  const orders = [{ id: '1', failsFirst: true }];
  const failed = results(app, 'invoices', orders);
  await expect(failed).rejects.toThrow(/^1 is out of paper$/);
  expect(await results(app, 'invoices', [{ id: '2', failsFirst: true }], { attempts: 2 })).toEqual([
    'receipt of 2',
  ]);
  expect(done).toEqual(['2']);
});

test('[S1] jobs for one account take turns across replicas', async () => {
  const [one] = await Promise.all([replica(Transfers), replica(Transfers)]);
  const orders = Array.from({ length: 10 }, () => ({ id: 'ada' }));
  expect(await results(one, 'transfers', orders)).toEqual(orders.map(() => 1));
});

test('[V18] [B117] a processor that is made for each job is guarded too', async () => {
  const [one] = await Promise.all([replica(Reports), replica(Reports)]);
  const orders = [{ id: '1' }, { id: '1' }, { id: '2' }];
  expect(await results(one, 'reports', orders)).toEqual(['report of 1', 'report of 1', 'report of 2']);
  expect([...done].sort()).toEqual(['1', '2']);
});

test('[L3] a replica that goes finishes its job and takes no other: none fails for a guard that is closed', async () => {
  const one = await replica(Invoices);
  const queue = one.get<Queue>(getQueueToken('invoices'));
  await queue.add('job', { id: '1', takesMs: 700 });
  await until(() => begun.includes('1'));
  const [closing] = [one.close(), queue.add('job', { id: '2' }), queue.add('job', { id: '3' })];
  await closing;
  expect(done).toEqual(['1']);
  const two = await replica(Invoices);
  await until(() => done.length === 3);
  expect([...done].sort()).toEqual(['1', '2', '3']);
  const counts = await two.get<Queue>(getQueueToken('invoices')).getJobCounts('failed');
  expect([counts['failed'], logger.errors]).toEqual([0, []]);
});

test('[L3] a processor that was never registered has no worker, which nobody has to be told of at the end', async () => {
  const app = await started(
    {
      imports: [
        BullModule.forRoot({ connection: connection(), prefix, extraOptions: { manualRegistration: true } }),
        BullModule.registerQueue({ name: 'transfers' }),
        GuardModule.forRoot({ locks: memoryLocks() }),
      ],
      providers: [Transfers],
    },
    logger,
  );
  await app.close();
  expect(logger.errors).toEqual([]);
});
