/**
 * The scheduler of @nestjs/schedule in an application, found by its name and used by its public methods: nothing of that
 * package is imported, since an application may do without it.
 */
import type { DiscoveryService } from '@nestjs/core';

/** What is used of it. */
interface SchedulerRegistry {
  getCronJobs(): ReadonlyMap<string, { stop(): unknown }>;
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
 * every tick until then would meet a closed guard. What is left stopped it deletes itself.
 */
export function stopSchedulers(discovery: DiscoveryService): void {
  for (const registry of schedulersOf(discovery)) {
    for (const job of registry.getCronJobs().values()) void job.stop();
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
