/**
 * Workers of @nestjs/bullmq in an application, found by the metadata of their classes and stopped by their public
 * methods: nothing of that package is imported, since an application may do without it.
 */
import type { LoggerService } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { PROCESSOR } from './metadata.js';

/** What is used of a class that extends `WorkerHost`. */
interface Processor {
  readonly worker: { pause(doNotWaitActive: boolean): Promise<unknown> };
}

/**
 * Makes all workers take no more jobs. @nestjs/bullmq closes them in the hook after the one that calls this: until then
 * they would go on taking jobs, and each would fail for a guard that is closed. Jobs that were taken go on.
 */
export function pauseWorkers(discovery: DiscoveryService, logger: Pick<LoggerService, 'error'>): void {
  for (const processor of processorsOf(discovery)) {
    // Not waited for: the worker takes nothing from here on, whatever its connection does.
    pause(processor).catch((error: unknown) => void logger.error(error));
  }
}

async function pause(processor: Processor): Promise<void> {
  await workerOf(processor)?.pause(true);
}

/** One that the application has not registered by hand so far has none, and throws. */
function workerOf(processor: Processor): Processor['worker'] | undefined {
  try {
    return processor.worker;
  } catch {
    return undefined;
  }
}

function processorsOf(discovery: DiscoveryService): Processor[] {
  const { hasMetadata } = Reflect as unknown as {
    readonly hasMetadata: (key: unknown, target: object) => boolean;
  };
  return discovery
    .getProviders()
    .map((wrapper): unknown => wrapper.instance)
    .filter((one): one is Processor => {
      const type: unknown = typeof one === 'object' && one !== null ? one.constructor : undefined;
      return typeof type === 'function' && hasMetadata(PROCESSOR, type);
    });
}
