/**
 * What timers of @nestjs/schedule would not do, or not as it looks: they take what Guard cannot name, follow one decorator
 * of two, and pass by what they do not find, and none of it is told by them.
 */
import { type GuardedMethod, problemBeside } from '@guard/core';
import { isScheduledElsewhere, optionsOf, timersOn } from './metadata.js';
import { called, type Place } from './places.js';

/** What is refused of a method, each in a sentence. */
export function timerProblems(place: Place, method: GuardedMethod): string[] {
  const several = severalTimers(place, method);
  return [...several, ...(several.length > 0 ? [] : unnamed(place, method)), ...neverCalled(place, method)];
}

/** The run would be named by the one and called by the other. */
function severalTimers(place: Place, method: GuardedMethod): string[] {
  const timers = timersOn(method, place.target);
  if (timers.length < 2) return [];
  return [
    `${called(place, method)} has ${timers.join(' and ')}, and @nestjs/schedule follows the upper one only: ` +
      `take one away, or give it a method of its own that calls this one`,
  ];
}

/** What the other scheduler takes and Guard does not: every tick would reject. */
function unnamed(place: Place, method: GuardedMethod): string[] {
  const { key, window, cron, every } = optionsOf(method);
  const isNamed = [key, window, cron, every].some((option) => option !== undefined);
  const problem = method.kind !== 'single-run' || isNamed ? undefined : problemBeside(method, place.target);
  if (problem === undefined) return [];
  return [
    `${called(place, method)} has a schedule of @nestjs/schedule whose instants cannot name its runs: ${problem}; ` +
      `change it, or give @SingleRun() a 'key' or a 'window'`,
  ];
}

function neverCalled(place: Place, method: GuardedMethod): string[] {
  if (!isScheduledElsewhere(method, place.target)) return [];
  if (typeof method.key === 'symbol') {
    return [
      `${called(place, method)} is scheduled by @nestjs/schedule, which calls no method that a symbol names: name it by a text`,
    ];
  }
  if (place.scope === 'singleton') return [];
  const because = place.scope === 'request' ? 'request-scoped, or something it depends on is' : 'transient';
  return [
    `${called(place, method)} is scheduled by @nestjs/schedule, which never calls it: the class is ${because}; ` +
      `give @SingleRun() the schedule (cron, every), which makes an instance for every run, or make it a singleton`,
  ];
}

/** Told: nobody is there to call it. */
export function withoutScheduler(place: Place): string[] {
  return place.methods
    .filter((method) => isScheduledElsewhere(method, place.target))
    .map(
      (method) =>
        `${called(place, method)} is for @nestjs/schedule to call, and the application does not import its ` +
        `ScheduleModule: nothing calls it; import ScheduleModule.forRoot()`,
    );
}
