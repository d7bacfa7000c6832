/**
 * Overrides that lost their guard: a subclass writes a guarded method anew, without a decorator. Looked for up the chain
 * of prototypes, whatever else the class has, because a class with no guarded method left looks like any other.
 */
import { type GuardedMethod, guardedMethods } from '@guard/core';
import { isScheduledElsewhere, optionsOf } from './metadata.js';

/** What is looked at of a provider. */
interface Overriding {
  readonly className: string;
  readonly target: object;
  /** As of `overriddenOf`. */
  readonly overridden: readonly GuardedMethod[];
}

/** Guarded methods of the classes above that calls on `target` do not reach; of several with one name, the nearest. */
export function overriddenOf(target: object): readonly GuardedMethod[] {
  const reached = new Set(guardedMethods(target));
  const found: GuardedMethod[] = [];
  for (let at = above(target); at !== null; at = above(at)) {
    for (const method of guardedMethods(at)) {
      if (reached.has(method)) continue;
      const isGuarded = [...reached].some(({ key, owner }) => key === method.key && owner !== method.owner);
      reached.add(method);
      if (!isGuarded) found.push(method);
    }
  }
  return found;
}

/** Refused: a timer calls the override by itself, on every node. */
export function unguardedTimers(place: Overriding): string[] {
  return place.overridden
    .filter((method) => isOnTimer(method, place.target))
    .map(
      (method) =>
        `${sentence(place, method)}, while @nestjs/schedule calls it on every node: write ${decoratorOf(method)} on it too`,
    );
}

/** Refused: the method that a timer calls is gone with its schedule, and nothing would call the override. */
export function lostSchedules(place: Overriding): string[] {
  return place.overridden
    .filter((method) => hasLostSchedule(method, place.target))
    .map(
      (method) =>
        `${sentence(place, method)}: the schedule of the method above is lost with the decorator, and nothing would ` +
        `call it; write ${decoratorOf(method)} on it too, with its schedule, or without where it has none any more`,
    );
}

/** Told: whoever calls it may know what it does. */
export function unguardedOverrides(place: Overriding): string[] {
  return place.overridden
    .filter((method) => !isOnTimer(method, place.target) && !hasLostSchedule(method, place.target))
    .map((method) => `${sentence(place, method)}: only what calls super.${String(method.key)}() is`);
}

/** What stands on the guarded method is no schedule of the override. */
function isOnTimer(method: GuardedMethod, target: object): boolean {
  return isScheduledElsewhere({ ...method, wrapper: undefined }, target);
}

function hasLostSchedule(method: GuardedMethod, target: object): boolean {
  if (isOnTimer(method, target)) return false;
  const { cron, every } = optionsOf(method);
  return cron !== undefined || every !== undefined || isScheduledElsewhere(method, target);
}

function sentence({ className }: Overriding, { key }: GuardedMethod): string {
  return `${className}.${String(key)} overrides a method that is guarded, and is not`;
}

function decoratorOf({ kind }: GuardedMethod): string {
  return kind === 'single-run' ? '@SingleRun()' : '@Locked()';
}

function above(object: object): object | null {
  return Object.getPrototypeOf(object) as object | null;
}
