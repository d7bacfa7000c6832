/**
 * The scheduler of @nestjs/schedule in an application, found by its name and used by its public methods: nothing of that
 * package is imported, since an application may do without it.
 */
import type { DiscoveryService } from '@nestjs/core';

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

function schedulersOf(discovery: DiscoveryService): SchedulerRegistry[] {
  return discovery
    .getProviders()
    .filter(({ name }) => name === 'SchedulerRegistry')
    .map(({ instance }) => instance as Partial<SchedulerRegistry> | undefined)
    .filter((one): one is SchedulerRegistry => typeof one?.getCronJobs === 'function');
}
