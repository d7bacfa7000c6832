/** Three processes of an application, whose backends break for five seconds in every way there is. On real time. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startWorker, until, type WorkerProcess } from '@guard/testing';
import { startPostgres, startRedis, type SqlServer, type TestServer } from '@guard/testing/servers';
import { ensureSchema } from '@guard/typeorm';
import { Redis } from 'ioredis';
import { DataSource } from 'typeorm';
import type { Replica, Told } from '../process/every-second.js';

const PROGRAM = join(__dirname, '..', 'process', 'every-second.ts');
const BROKEN_MS = 5_000;
/** What was under way when something broke may still end. */
const UNDER_WAY_MS = 500;

let [redis, postgres, db, admin]: [TestServer?, SqlServer?, DataSource?, Redis?] = [];
beforeAll(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  db = await new DataSource({ type: 'postgres', url: postgres.url }).initialize();
  await ensureSchema(db);
  admin = new Redis(redis.url);
  admin.on('error', () => undefined);
}, 60_000);
afterAll(async () => {
  admin?.disconnect();
  await db?.destroy();
  await Promise.all([redis?.stop(), postgres?.stop()]);
});

/** Three replicas, and what each has told so far. */
class Application implements AsyncDisposable {
  readonly workers: WorkerProcess[] = [];
  readonly told: Told[][] = [];

  constructor(namespace: string, onUnavailable: Replica['onUnavailable']) {
    const input: Replica = { redis: redis!.url, postgres: postgres!.url, namespace, onUnavailable };
    for (let replica = 0; replica < 3; replica++) {
      const worker = startWorker(PROGRAM, { input, exitWithinMs: 20_000 });
      const told: Told[] = [];
      this.workers.push(worker);
      this.told.push(told);
      void (async () => {
        for (;;) told.push(await worker.next<Told>());
      })().catch(() => undefined);
    }
  }

  /** Every run so far, by its key. */
  ran(): string[] {
    return this.told.flat().flatMap((one) => (one.what === 'ran' ? [String(one.key)] : []));
  }

  failures(replica: number): Told[] {
    return this.told[replica]!.filter(({ what }) => what === 'skipped' || what === 'logged');
  }

  /** An application whose backend is away does not come up: nothing is broken before all are there. */
  async up(): Promise<void> {
    const isUp = (told: readonly Told[]): boolean => told.some(({ what }) => what === 'up');
    await until('all replicas are up', () => this.told.every(isUp), 60_000);
    await this.runs(2);
  }

  async runs(more: number): Promise<void> {
    const before = this.ran().length;
    await until('runs go on', () => this.ran().length >= before + more, 30_000);
  }

  /** They are still there, and end by themselves. */
  async end(): Promise<void> {
    for (const worker of this.workers) worker.tell('end');
    await Promise.all(this.workers.map((worker) => worker.finish()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What ends a test early says more than what was going on in them.
    await Promise.all(this.workers.map((worker) => worker.kill()));
  }
}

const WAYS: [string, () => Promise<unknown>, () => Promise<unknown>][] = [
  ['the lock server is down', () => redis!.kill(), () => redis!.restart({ keepData: true })],
  ['the lock server answers later than any deadline', () => redis!.pause(), async () => redis!.resume()],
  [
    'the right to lock was withdrawn',
    () => admin!.call('ACL', 'SETUSER', 'default', '-eval', '-evalsha'),
    () => admin!.call('ACL', 'SETUSER', 'default', '+eval', '+evalsha'),
  ],
  [
    'the table of the runs is gone',
    () => db!.query('ALTER TABLE guard_run RENAME TO away'),
    () => db!.query('ALTER TABLE away RENAME TO guard_run'),
  ],
];

test('[B125] [S6] [S8] three processes run nothing while a backend is broken, each says so, and all go on', async () => {
  await using application = new Application('closed', 'skip');
  await application.up();
  for (const [way, breakIt, repair] of WAYS) {
    await breakIt();
    await sleep(UNDER_WAY_MS);
    const [ran, failures] = [application.ran(), [0, 1, 2].map((one) => application.failures(one).length)];
    await sleep(BROKEN_MS);
    await until(`every replica says that ${way}`, () =>
      failures.every((before, one) => application.failures(one).length > before),
    );
    expect([way, application.ran()]).toEqual([way, ran]);
    await repair();
    await application.runs(2);
  }
  await application.end();
  const ran = application.ran();
  expect(new Set(ran).size).toBe(ran.length);
  // A skipped call says which instant it was, and nobody ran that one before.
  const skipped = application.told.flat().flatMap((one) => (one.what === 'skipped' ? [String(one.key)] : []));
  expect(skipped.length).toBeGreaterThan(0);
  expect(skipped.every((key) => /^\d{4}-.*Z$/.test(key))).toBe(true);
}, 120_000);

test('[B125] [S7] a task that says so runs without a lock meanwhile, each instant once, and tells of each', async () => {
  await using application = new Application('open', 'run-unguarded');
  await application.up();
  await redis!.kill();
  await sleep(UNDER_WAY_MS);
  const unguarded = (): number => application.told.flat().filter(({ what }) => what === 'unguarded').length;
  await until('it runs unguarded', () => unguarded() >= 2, 30_000);
  await redis!.restart({ keepData: true });
  await application.runs(2);
  await application.end();
  const ran = application.ran();
  expect(new Set(ran).size).toBe(ran.length);
}, 90_000);
