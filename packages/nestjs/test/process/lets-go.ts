/** Every way in which an application ends, or does not come up; afterwards nothing may keep this process alive. */
import 'reflect-metadata';
import { memoryLocks, memoryState, SingleRun } from '@guard/core';
import { GuardModule, type GuardModuleOptions } from '@guard/nestjs';
import type { WorkerMain } from '@guard/testing';
import { type ModuleMetadata, type Provider } from '@nestjs/common';
import { Test } from '@nestjs/testing';

class Often {
  @SingleRun({ every: '1s' }) async run(): Promise<void> {}
}

const options = (): GuardModuleOptions => ({ locks: memoryLocks(), state: memoryState() });

const main: WorkerMain<undefined> = async () => [
  await ended({ imports: [GuardModule.forRoot(options())], providers: [Often] }, true),
  await ended({ imports: [GuardModule.forRoot(options())], providers: [Often] }, false),
  await ended(withProvider({ provide: 'x', useFactory: () => Promise.reject(new Error('factory')) }), true),
  await ended(
    withProvider({ provide: 'x', useValue: { onModuleInit: () => Promise.reject(new Error('init')) } }),
    true,
  ),
  await ended(
    { imports: [GuardModule.forRootAsync({ useFactory: () => Promise.reject(new Error('async')) })] },
    true,
  ),
];
export default main;

function withProvider(provider: Provider): ModuleMetadata {
  return { imports: [GuardModule.forRoot(options())], providers: [Often, provider] };
}

async function ended(metadata: ModuleMetadata, initialised: boolean): Promise<string> {
  try {
    const module = await Test.createTestingModule(metadata)
      .setLogger(false as never)
      .compile();
    if (initialised) await module.init();
    await module.close();
    return 'closed';
  } catch (error) {
    return (error as Error).message;
  }
}
