/**
 * The scheduler of @nestjs/schedule in an application, found by its name and used by its public methods, but for its
 * logger: nothing of that package is imported, since an application may do without it.
 */
import { GuardError } from '@guard/core';
import type { Logger } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import type { Timer } from './metadata.js';

/** What is used of it. */
interface SchedulerRegistry {
  getCronJobs(): ReadonlyMap<string, unknown>;
  deleteCronJob(name: string): void;
  getIntervals(): readonly string[];
  deleteInterval(name: string): void;
  getTimeouts(): readonly string[];
  deleteTimeout(name: string): void;
}

/** Whether the application imports `ScheduleModule`: without it `@Cron` and its like do nothing. */
export function hasScheduler(discovery: DiscoveryService): boolean {
  return schedulersOf(discovery).length > 0;
}

const OPTIONS = 'SCHEDULE_MODULE_OPTIONS';

/** The decorators that no `ScheduleModule` of the application follows: switched off by its options, in this process. */
export function switchedOff(discovery: DiscoveryService): readonly Timer[] {
  const options = discovery
    .getProviders()
    .filter(({ token }) => token === OPTIONS)
    .map(({ instance }) => instance as ScheduleOptions | null | undefined);
  if (options.length === 0) return [];
  const isOff = (name: keyof ScheduleOptions): boolean => options.every((one) => one?.[name] !== true);
  return [
    ...(isOff('cronJobs') ? (['@Cron'] as const) : []),
    ...(isOff('intervals') ? (['@Interval'] as const) : []),
    ...(isOff('timeouts') ? (['@Timeout'] as const) : []),
  ];
}

interface ScheduleOptions {
  readonly cronJobs?: boolean;
  readonly intervals?: boolean;
  readonly timeouts?: boolean;
}

/**
 * Stops the timers, as `ScheduleModule` does in the very hook that calls this; but its turn may come after the grace, and
 * every tick until then would meet a closed guard.
 */
export function stopSchedulers(discovery: DiscoveryService): void {
  for (const registry of schedulersOf(discovery)) {
    // Deleted, not only stopped: one with an initial delay would be started when that is over.
    for (const name of [...registry.getCronJobs().keys()]) registry.deleteCronJob(name);
    for (const name of registry.getIntervals()) registry.deleteInterval(name);
    for (const name of registry.getTimeouts()) registry.deleteTimeout(name);
  }
}

/**
 * From now on, a tick that only waited for its lock or run when the application began to close is told at the level of
 * debug: it was not begun, and whatever it was for is left to other processes. A run that was cut off at the end of the
 * grace stays an error. What the scheduler logs is what its ticks threw; errors of any other call go to its caller.
 */
export function quietTicks(discovery: DiscoveryService): void {
  for (const { name, instance } of discovery.getProviders()) {
    const logger =
      name === 'ScheduleExplorer' ? (instance as { readonly logger?: Logger }).logger : undefined;
    if (typeof logger?.error !== 'function' || typeof logger.debug !== 'function') continue;
    const error = logger.error.bind(logger) as (...told: unknown[]) => void;
    logger.error = (...told: unknown[]): void => {
      if (isLeftToOthers(told[0])) logger.debug(told[0]);
      else error(...told);
    };
  }
}

function isLeftToOthers(error: unknown): boolean {
  return GuardError.is(error, 'closed') && error.reason !== 'grace-over';
}

function schedulersOf(discovery: DiscoveryService): SchedulerRegistry[] {
  return discovery
    .getProviders()
    .filter(({ name }) => name === 'SchedulerRegistry')
    .map(({ instance }) => instance as Partial<SchedulerRegistry> | undefined)
    .filter((one): one is SchedulerRegistry => typeof one?.getCronJobs === 'function');
}
