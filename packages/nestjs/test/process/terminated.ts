/** An application with shutdown hooks that works until it is asked to finish, and is terminated meanwhile. */
import 'reflect-metadata';
import { currentRun, type Guard, memoryLocks, memoryState, SingleRun } from '@guard/core';
import { getGuardToken, GuardModule } from '@guard/nestjs';
import type { WorkerMain } from '@guard/testing';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const main: WorkerMain<undefined> = async ({ tell }) => {
  const state = memoryState();
  let was = '';

  @Injectable()
  class Slow implements OnApplicationShutdown {
    @SingleRun({ name: 'slow', key: 'once' }) async run(): Promise<void> {
      const { stopSignal } = currentRun()!;
      const asked = new Promise<void>((resolve) => {
        stopSignal.addEventListener('abort', () => resolve(), { once: true });
      });
      void tell('working');
      await asked;
      void tell('asked to finish');
      was = 'completed';
    }

    /** Where an application closes its clients: the guard has closed, and the work has ended. */
    onApplicationShutdown(): void {
      void tell(`client closed: guard ${app.get<Guard>(getGuardToken()).health().state}, work ${was}`);
    }
  }

  class Root {}
  const app = await NestFactory.createApplicationContext(
    { module: Root, imports: [GuardModule.forRoot({ locks: memoryLocks(), state })], providers: [Slow] },
    { logger: false },
  );
  app.enableShutdownHooks();
  await app.get(Slow).run();
  await new Promise(() => undefined);
};
export default main;
