/** What is guarded, and how: for the log at boot, for tests, and for whoever asks. */
import { besideOf, type Beside, type GuardedMethod, problemBeside } from '@guard/core';
import { Injectable } from '@nestjs/common';
import { canRunAgain, nameIn } from './checks.js';
import { isDisabled, optionsOf, type Timer, timeoutMsOf, timersOn } from './metadata.js';
import { called, type Place, type Scope } from './places.js';
import { guardNameOf } from './tokens.js';

/** One decorated method of a provider or controller. */
export interface GuardedPlace {
  /** Name of the guard; `undefined`: the decorator names one of its own. */
  readonly guard: string | undefined;
  readonly module: string;
  /** `Class.method`, of the class that is provided. */
  readonly method: string;
  readonly kind: 'single-run' | 'locked';
  /** The task's name, or the lock's where its decorator gives no key. */
  readonly name: string;
  /** When it is due by itself, or is called by `@Cron` and its like; `undefined`: when somebody calls it. */
  readonly schedule: string | undefined;
  /** What names the run. */
  readonly runKey: string | undefined;
  /** What the lock is on. */
  readonly lock: string;
  readonly scope: Scope;
  /** Whether a started node can begin it, or go on with it, by itself. */
  readonly restartable: boolean;
}

/** The boot report. */
@Injectable()
export class GuardReport {
  /** Every decorated method that the container can reach. */
  entries: readonly GuardedPlace[] = [];
  /** What deserves a look. */
  warnings: readonly string[] = [];

  /** The same as text, a line each, as it is logged at boot. */
  lines(): string[] {
    const rows = this.entries.map(
      ({ method, kind, name, schedule, runKey, lock, guard, scope, restartable }) => [
        method,
        kind === 'single-run' ? `task '${name}'` : 'lock',
        schedule ?? 'when called',
        ...(runKey === undefined ? [] : [`run key: ${runKey}`]),
        `lock: ${lock}`,
        guard === undefined ? 'a guard of its own' : `guard '${guard}'`,
        ...(scope === 'singleton' ? [] : [`${scope}-scoped`]),
        ...(restartable ? ['restartable'] : []),
      ],
    );
    return rows.map((cells) => cells.join(' · '));
  }
}

/** An entry for each decorated method; `off` are the timers that nothing follows in this process. */
export function entriesOf(places: readonly Place[], off: readonly Timer[]): GuardedPlace[] {
  return places.flatMap((place) => place.methods.map((method) => entryOf(place, method, off)));
}

function entryOf(place: Place, method: GuardedMethod, off: readonly Timer[]): GuardedPlace {
  const name = nameIn(place, method);
  // Only a run is named by it: whatever else stands there does not have to be something that Guard can follow.
  const beside =
    problemBeside(method, place.target) === undefined ? besideOf(method, place.target) : undefined;
  return {
    guard: method.guard === undefined ? guardNameOf(place.type) : undefined,
    module: place.moduleName,
    method: called(place, method),
    kind: method.kind,
    name,
    schedule: ownSchedule(method) ?? timerText(place, method, beside, off),
    runKey: method.kind === 'single-run' ? runKeyText(method, beside) : undefined,
    lock: lockText(method, name, beside),
    scope: place.scope,
    restartable: canRunAgain(method),
  };
}

function ownSchedule(method: GuardedMethod): string | undefined {
  const { cron, every, timeZone } = optionsOf(method);
  if (cron !== undefined) return `cron ${cron} (${timeZone ?? 'UTC'})`;
  return every === undefined ? undefined : `every ${every}`;
}

/** The timer of @nestjs/schedule, and whether it stands still. */
function timerText(
  { target }: Place,
  method: GuardedMethod,
  beside: Beside | undefined,
  off: readonly Timer[],
): string | undefined {
  const isOff = timersOn(method, target).some((timer) => off.includes(timer));
  const still = `${isDisabled(method, target) ? ', disabled' : ''}${isOff ? ', switched off in this process' : ''}`;
  if (beside?.cron !== undefined) return `@Cron ${beside.cron} (${beside.timeZone ?? 'UTC'})${still}`;
  if (beside?.every !== undefined) return `@Interval ${beside.every} ms${still}`;
  if (beside?.key !== undefined) return `@Cron at ${String(beside.key)}${still}`;
  const timeoutMs = timeoutMsOf(method, target);
  return timeoutMs === undefined ? undefined : `@Timeout ${timeoutMs} ms${still}`;
}

function runKeyText(method: GuardedMethod, beside: Beside | undefined): string {
  const { key, window, cron, every } = optionsOf(method);
  if (key !== undefined) return typeof key === 'function' ? 'of the arguments' : String(key);
  if (window !== undefined) return `the window of ${window}`;
  if (cron !== undefined || every !== undefined || beside !== undefined) return 'the instant';
  return 'none, calls only never overlap';
}

function lockText(method: GuardedMethod, name: string, beside: Beside | undefined): string {
  const { key } = optionsOf(method);
  if (method.kind === 'single-run')
    return key === undefined && beside?.key === undefined ? 'the task' : 'the task and key';
  if (key === undefined) return name;
  return typeof key === 'function' ? 'of the arguments' : String(key);
}
