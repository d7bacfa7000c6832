/** What other decorators leave on a method, as far as this package looks at it. Nothing of theirs is imported. */
import { type GuardedMethod, type Locked, reachedBy, type SingleRunOptions } from '@guard/core';

const SCHEDULER_TYPE = 'SCHEDULER_TYPE';
const CRON_OPTIONS = 'SCHEDULE_CRON_OPTIONS';
const ROUTE = ['path', 'method'] as const;

type MetadataReflect = {
  readonly getMetadataKeys: (target: object) => readonly unknown[];
  readonly getMetadata: (key: unknown, target: object) => unknown;
};
const { getMetadataKeys, getMetadata } = Reflect as unknown as MetadataReflect;

/** Options of a decorated method, of whichever decorator. */
export type MethodOptions = SingleRunOptions & NonNullable<Parameters<typeof Locked>[0]>;

/** The options that were given to the decorator. */
export function optionsOf(method: GuardedMethod): MethodOptions {
  return method.options as MethodOptions;
}

/** The keys of metadata that the decorated function has and the one that is reached in the class has not. */
export function lostMetadata(method: GuardedMethod, self: object): readonly string[] {
  const { wrapper } = method;
  const reached = reachedBy(method, self);
  if (wrapper === undefined || reached === undefined || reached === wrapper) return [];
  const there = new Set(getMetadataKeys(reached));
  return getMetadataKeys(wrapper)
    .filter((key) => !there.has(key))
    .map(String);
}

/** Whether a scheduler of @nestjs/schedule looks for the method: `@Cron`, `@Interval` or `@Timeout`. */
export function isScheduledElsewhere(method: GuardedMethod, self: object): boolean {
  return [method.wrapper, reachedBy(method, self)].some(
    (fn) => fn !== undefined && getMetadata(SCHEDULER_TYPE, fn) !== undefined,
  );
}

/** Whether `@Cron` says that its timer is not to be started. */
export function isDisabled(method: GuardedMethod, self: object): boolean {
  return [method.wrapper, reachedBy(method, self)].some((fn) => {
    const cron = fn === undefined ? undefined : getMetadata(CRON_OPTIONS, fn);
    return (cron as { readonly disabled?: unknown } | undefined)?.disabled === true;
  });
}

/** Whether the method answers a route. */
export function isRoute(method: GuardedMethod, self: object): boolean {
  const reached = reachedBy(method, self);
  return reached !== undefined && ROUTE.every((key) => getMetadata(key, reached) !== undefined);
}
