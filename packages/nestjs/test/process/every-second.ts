/**
 * One replica of an application with a `@Cron` of every second: locks on Redis, runs in Postgres. Tells the test what
 * ran and what it was told of, and ends when it hears anything.
 */
import 'reflect-metadata';
import { currentRun, type GuardEvents, type RunSettings, SingleRun } from '@guard/core';
import { getGuardToken, GuardModule } from '@guard/nestjs';
import { redisLocks } from '@guard/redis';
import { fromIoredis } from '@guard/redis/ioredis';
import type { WorkerMain } from '@guard/testing';
import { typeormRuns } from '@guard/typeorm';
import { Injectable, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { Redis } from 'ioredis';
import { DataSource } from 'typeorm';

/** What a replica is given. */
export interface Replica {
  readonly redis: string;
  readonly postgres: string;
  readonly namespace: string;
  readonly onUnavailable: NonNullable<RunSettings['onUnavailable']>;
}

/** What it tells. */
export type Told =
  | { readonly what: 'up' }
  | { readonly what: 'ran' | 'skipped' | 'unguarded'; readonly key: string | undefined }
  | { readonly what: 'logged'; readonly text: string }
  | { readonly what: 'event'; readonly text: string };

const main: WorkerMain<Replica> = async ({ input, tell, hear }) => {
  const say = (told: Told): void => void tell(told);

  @Injectable()
  class EverySecond {
    @SingleRun({ name: 'every-second', onUnavailable: input.onUnavailable })
    @Cron('* * * * * *')
    async run(): Promise<void> {
      say({ what: 'ran', key: currentRun()?.key });
    }
  }

  const redis = new Redis(input.redis);
  // Without a listener ioredis prints each refused connection.
  redis.on('error', () => undefined);
  const dataSource = await new DataSource({ type: 'postgres', url: input.postgres }).initialize();
  class Root {}
  const app = await NestFactory.createApplicationContext(
    {
      module: Root,
      imports: [
        ScheduleModule.forRoot(),
        GuardModule.forRoot({
          locks: redisLocks(fromIoredis(redis)),
          runs: typeormRuns(dataSource),
          namespace: input.namespace,
          defaults: { ttl: '1s' },
        }),
      ],
      providers: [EverySecond],
    },
    { logger: logger((text) => say({ what: 'logged', text })), abortOnError: false },
  );
  const guard = app.get<{ on: (event: string, listener: (told: never) => void) => void }>(getGuardToken());
  guard.on('run-skipped', ({ key, reason }: GuardEvents['run-skipped']) => {
    if (reason === 'unavailable') say({ what: 'skipped', key });
  });
  guard.on('run-unguarded', ({ key }: GuardEvents['run-unguarded']) => say({ what: 'unguarded', key }));
  guard.on('backend-unavailable', ({ backend }: GuardEvents['backend-unavailable']) =>
    say({ what: 'event', text: backend }),
  );
  say({ what: 'up' });
  await hear();
  await app.close();
  redis.disconnect();
  await dataSource.destroy();
};
export default main;

function logger(error: (text: string) => void): LoggerService {
  const nothing = (): void => undefined;
  return { log: nothing, warn: nothing, error: (message: unknown) => error(String(message)) };
}
