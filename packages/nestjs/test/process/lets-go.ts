/** Every way in which an application ends, or does not come up; afterwards nothing may keep this process alive. */
import 'reflect-metadata';
import { type Guard, memoryLocks, memoryState, SingleRun } from '@guard/core';
import { getGuardToken, GuardModule, type GuardModuleOptions } from '@guard/nestjs';
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
  await notBootstrapped(),
];
export default main;

/** Guards have started by then, and Nest calls no hook any more: what the guide says has to be done. */
async function notBootstrapped(): Promise<string> {
  const late = { onApplicationBootstrap: () => Promise.reject(new Error('bootstrap')) };
  const module = await Test.createTestingModule(withProvider({ provide: 'x', useValue: late }))
    .setLogger(false as never)
    .compile();
  const guard = module.get<Guard>(getGuardToken());
  const message = await module.init().then(
    () => 'initialised',
    (error: Error) => error.message,
  );
  const { state } = guard.health();
  await guard.close();
  return `${message}: ${state}, ${guard.health().state}`;
}

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
