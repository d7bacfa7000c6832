/**
 * What a queue calls: a class as BullMQ's processors are, with a `process(job)` that workers call with jobs at least
 * once, from several replicas, and that says to the queue by its answer or error what became of the job.
 */
import { currentRun, GuardError, Locked, memoryLocks, memoryState, SingleRun } from '@guard/core';
import { GuardModule, GuardReport } from '@guard/nestjs';
import { Injectable, SetMetadata } from '@nestjs/common';
import { closeAll, started } from './support/app.js';

afterEach(closeAll);

/** What Guard's part reads of a job. */
interface Job {
  readonly id: string;
  readonly data: { readonly account: string; readonly cents: number };
}

/** Stands for `WorkerHost` of @nestjs/bullmq: its explorer finds the class by metadata, and calls this method. */
abstract class Host {
  abstract process(job: Job, token?: string): Promise<unknown>;
}

const booked: string[] = [];
const inside = new Map<string, number>();
beforeEach(() => {
  booked.length = 0;
  inside.clear();
});

@Injectable()
@SetMetadata('bullmq:processor_metadata', { name: 'invoices' })
class Invoices extends Host {
  @SingleRun({ name: 'invoice', key: (job: Job) => job.id, onDuplicate: 'result', wait: '5s' })
  override async process(job: Job): Promise<string> {
    await new Promise((resolve) => setTimeout(resolve, 30));
    if (job.data.cents < 0) throw new Error(`${job.id} is below zero`);
    booked.push(`${currentRun()?.key}`);
    return `receipt of ${job.id}`;
  }
}

@Injectable()
@SetMetadata('bullmq:processor_metadata', { name: 'transfers' })
class Transfers extends Host {
  @Locked({ key: (job: Job) => ['account', job.data.account], wait: '5s' })
  override async process({ data: { account } }: Job): Promise<number> {
    const among = (inside.get(account) ?? 0) + 1;
    inside.set(account, among);
    await new Promise((resolve) => setTimeout(resolve, 20));
    inside.set(account, among - 1);
    return among;
  }
}

const job = (id: string, account = 'ada', cents = 5): Job => ({ id, data: { account, cents } });

async function replicas<T extends Host>(type: new () => T): Promise<T[]> {
  const shared = { locks: memoryLocks(), state: memoryState() };
  const module = (): ReturnType<typeof started> =>
    started({ imports: [GuardModule.forRoot(shared)], providers: [type] });
  return (await Promise.all([module(), module()])).map((app) => app.get(type));
}

test('[S7] a job that is delivered twice, to two replicas at once and again later, is done once', async () => {
  const [one, two] = await replicas(Invoices);
  const answers = await Promise.all([one!.process(job('1')), two!.process(job('1')), two!.process(job('2'))]);
  expect(answers).toEqual(['receipt of 1', 'receipt of 1', 'receipt of 2']);
  expect(await two!.process(job('1'))).toBe('receipt of 1');
  expect([...booked].sort()).toEqual(['1', '2']);
});

test('[S8] an error of the work reaches the queue as it is, and the next delivery does the job again', async () => {
  const [one, two] = await replicas(Invoices);
  const error = await one!.process(job('1', 'ada', -1)).catch((reason: unknown) => reason);
  expect(GuardError.is(error)).toBe(false);
  expect(error).toMatchObject({ message: '1 is below zero' });
  expect(await two!.process(job('1'))).toBe('receipt of 1');
  expect(booked).toEqual(['1']);
});

test('[S1] jobs for one account take turns across replicas, and jobs for others do not wait', async () => {
  const [one, two] = await replicas(Transfers);
  const jobs = [1, 2, 3, 4].map((id) => job(String(id)));
  const among = await Promise.all(jobs.map((each, place) => (place % 2 ? one! : two!).process(each)));
  expect(among).toEqual([1, 1, 1, 1]);
});

test('[V17] what the explorer of a queue reads stays: the name, the parameters and the metadata of the class', async () => {
  const app = await started({
    imports: [GuardModule.forRoot({ locks: memoryLocks(), state: memoryState() })],
    providers: [Invoices, Transfers],
  });
  const found = app.get(Invoices);
  expect([found.process.name, found.process.length, found instanceof Host]).toEqual(['process', 1, true]);
  expect(Reflect.getMetadata('bullmq:processor_metadata', Invoices)).toEqual({ name: 'invoices' });
  expect(app.get(GuardReport).lines()).toHaveLength(2);
});
