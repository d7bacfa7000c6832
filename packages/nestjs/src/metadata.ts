/** What other decorators leave on a method, as far as this package looks at it. Nothing of theirs is imported. */
import { type GuardedMethod, type Locked, reachedBy, type SingleRunOptions } from '@guard/core';

const SCHEDULER_TYPE = 'SCHEDULER_TYPE';
/** What each decorator of @nestjs/schedule leaves. */
const TIMERS = {
  '@Cron': 'SCHEDULE_CRON_OPTIONS',
  '@Interval': 'SCHEDULE_INTERVAL_OPTIONS',
  '@Timeout': 'SCHEDULE_TIMEOUT_OPTIONS',
} as const;
const ROUTE = ['path', 'method'] as const;
const MESSAGE_HANDLER = 'microservices:handler_type';
/** Of `MESSAGE_HANDLER`: one that answers; the other kind takes events. */
const ANSWERS_MESSAGES = 1;
const RESOLVER = 'graphql:resolver_type';
/** On the class of a worker of @nestjs/bullmq. */
export const PROCESSOR = 'bullmq:processor_metadata';

/** A decorator of @nestjs/schedule. */
export type Timer = keyof typeof TIMERS;

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
  if (wrapper === undefined || reached === wrapper) return [];
  // Nothing is reached where a getter stands in its place: what it answers is made anew, and bare.
  const there = new Set(reached === undefined ? [] : getMetadataKeys(reached));
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

/** The decorators of @nestjs/schedule on the method. */
export function timersOn(method: GuardedMethod, self: object): readonly Timer[] {
  return (Object.keys(TIMERS) as Timer[]).filter((timer) => timerOptions(timer, method, self) !== undefined);
}

/** After how many milliseconds `@Timeout` calls the method. */
export function timeoutMsOf(method: GuardedMethod, self: object): number | undefined {
  return timerOptions('@Timeout', method, self)?.timeout as number | undefined;
}

/** Whether `@Cron` says that its timer is not to be started. */
export function isDisabled(method: GuardedMethod, self: object): boolean {
  return timerOptions('@Cron', method, self)?.disabled === true;
}

function timerOptions(
  timer: Timer,
  method: GuardedMethod,
  self: object,
): { readonly disabled?: unknown; readonly timeout?: unknown } | undefined {
  return [method.wrapper, reachedBy(method, self)]
    .map((fn) => (fn === undefined ? undefined : getMetadata(TIMERS[timer], fn)))
    .find((options): options is object => options !== undefined);
}

/** Whom the method answers, for people; `undefined`: whoever calls it knows what it does. */
export function answers(method: GuardedMethod, self: object): string | undefined {
  const reached = reachedBy(method, self);
  if (reached === undefined) return undefined;
  if (ROUTE.every((key) => getMetadata(key, reached) !== undefined)) return 'a route';
  if (getMetadata(MESSAGE_HANDLER, reached) === ANSWERS_MESSAGES) return 'a message';
  if (getMetadata(RESOLVER, reached) !== undefined) return 'a query of GraphQL';
  const isProcessor = method.key === 'process' && getMetadata(PROCESSOR, self.constructor) !== undefined;
  return isProcessor ? 'a queue' : undefined;
}
