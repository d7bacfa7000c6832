/**
 * What would silently not be guarded, or not as it looks. All of it is found before the application answers anything,
 * and told with class, method and remedy.
 */
import { type GuardedMethod, reachedBy, taskNameOf } from '@guard/core';
import { answers, lostMetadata, optionsOf } from './metadata.js';
import { lostSchedules, unguardedOverrides, unguardedTimers } from './overrides.js';
import { called, type Place } from './places.js';
import type { GuardRegistration } from './registration.js';
import { timerProblems, withoutScheduler } from './timers.js';
import { guardNameOf } from './tokens.js';

/** Options that mean nothing before some node has been started. */
const NEED_A_NODE = ['retry', 'onCrash', 'maxTakeovers', 'compensate', 'cron', 'every'] as const;

/** Everything that is refused, each in a sentence. */
export function problemsOf(
  places: readonly Place[],
  registrations: ReadonlyMap<string, GuardRegistration>,
): string[] {
  const known = quoted([...registrations.keys()]) || 'none';
  return [
    ...places.flatMap((place) => {
      const guard = registrations.get(guardNameOf(place.type));
      return [
        ...withoutGuard(place, guard, known),
        ...unguardedTimers(place),
        ...lostSchedules(place),
        ...place.methods.flatMap((method) => [
          ...withoutNode(place, method, guard),
          ...withoutMetadata(place, method),
          ...timerProblems(place, method),
          ...misleading(place, method),
        ]),
      ];
    }),
    ...sameNames(places, registrations),
    ...sameTasks(places),
  ];
}

/** What is told and not refused. */
export function warningsOf(
  places: readonly Place[],
  registrations: ReadonlyMap<string, GuardRegistration>,
  hasScheduler: boolean,
): string[] {
  const ofPlaces = places.flatMap((place) => [
    ...unguardedOverrides(place),
    ...place.methods.flatMap((method) => leftToOthers(place, method, registrations)),
    ...hidden(place),
    ...(hasScheduler ? [] : withoutScheduler(place)),
  ]);
  return [...ofPlaces, ...providedTwice(places)];
}

function withoutGuard(place: Place, guard: GuardRegistration | undefined, known: string): string[] {
  if (guard !== undefined || place.methods.every((method) => method.guard !== undefined)) return [];
  const name = guardNameOf(place.type);
  return [
    `${place.className} needs the guard '${name}', and registered are: ${known}; ` +
      `import GuardModule.forRoot(…) for it, or name another one by @GuardedBy on the class`,
  ];
}

function withoutNode(place: Place, method: GuardedMethod, guard: GuardRegistration | undefined): string[] {
  if (method.kind !== 'single-run' || method.guard !== undefined || guard === undefined) return [];
  const what = called(place, method);
  if (guard.starts === 'none') {
    return [
      `${what} runs once, and the guard '${guard.name}' has nowhere to keep runs: give it 'runs' or 'state'`,
    ];
  }
  if (guard.starts !== 'nowhere' && guard.starts !== 'idle') return [];
  const given = needsNode(method);
  if (given.length === 0) return [];
  return [
    `${what} has ${given.join(', ')}, and ${nobody(guard)}: ` +
      `set its 'start' to true, or to 'elsewhere' where another process does it`,
  ];
}

function needsNode(method: GuardedMethod): readonly string[] {
  return NEED_A_NODE.filter((option) => optionsOf(method)[option] !== undefined);
}

/** A list of tasks is easily left as it was when a task is added. */
function leftToOthers(
  place: Place,
  method: GuardedMethod,
  registrations: ReadonlyMap<string, GuardRegistration>,
): string[] {
  if (method.kind !== 'single-run' || method.guard !== undefined) return [];
  const { tasks = undefined, name = '' } = registrations.get(guardNameOf(place.type)) ?? {};
  const given = needsNode(method);
  const task = nameIn(place, method);
  if (tasks === undefined || tasks.includes(task) || given.length === 0) return [];
  return [
    `${called(place, method)} has ${given.join(', ')}, and the node of the guard '${name}' is started for ` +
      `${quoted(tasks)} only: nobody begins or repeats it unless another process does; ` +
      `name '${task}' in 'start.tasks' where it should`,
  ];
}

function nobody({ name, starts }: GuardRegistration): string {
  if (starts === 'nowhere') return `no node of the guard '${name}' is started`;
  return `the node of the guard '${name}' is started for no tasks`;
}

function withoutMetadata(place: Place, method: GuardedMethod): string[] {
  const lost = lostMetadata(method, place.target);
  if (lost.length === 0) return [];
  return [
    `${called(place, method)} lost metadata (${lost.join(', ')}): a decorator above, or the constructor, put another ` +
      `function or a getter in its place without it, so whoever looks for it there finds nothing; write that ` +
      `decorator below`,
  ];
}

/** A skipped call answers nothing, which looks like success to a client, and to a queue like a job that is done. */
function misleading(place: Place, method: GuardedMethod): string[] {
  if (method.kind !== 'single-run' || optionsOf(method).onDuplicate !== undefined) return [];
  const whom = answers(method, place.target);
  if (whom === undefined) return [];
  return [
    `${called(place, method)} answers ${whom}, and a skipped call would answer as if it had run: say what a duplicate ` +
      `gets by onDuplicate ('throw', 'result', or 'skip' if that is meant)`,
  ];
}

/** Records go by the name, whichever guard of one store and namespace writes them, and whether or not a node can run them again. */
function sameNames(
  places: readonly Place[],
  registrations: ReadonlyMap<string, GuardRegistration>,
): string[] {
  const guardOf = (place: Place): GuardRegistration | undefined => registrations.get(guardNameOf(place.type));
  const byStore = groups(runsOf(places), ({ place }) => guardOf(place)?.store);
  const byTask = byStore.flatMap((kept) =>
    groups(kept, ({ place, method }) => `${guardOf(place)?.guard.namespace} ${nameIn(place, method)}`),
  );
  return byTask.flatMap((found) => {
    const [first] = found;
    if (first === undefined || found.every(({ method }) => method === first.method)) return [];
    const methods = [...new Set(found.map(({ place, method }) => called(place, method)))].join(' and ');
    return [
      `${methods} are both the task '${nameIn(first.place, first.method)}': give each a 'name' of its own`,
    ];
  });
}

/** One method on several instances that a node could run again: it can only be one of them, and which is chance. */
function sameTasks(places: readonly Place[]): string[] {
  const restartable = runsOf(places).filter(({ method }) => canRunAgain(method));
  return groups(restartable, ({ method }) => method).flatMap((found) => {
    const [first, ...others] = found;
    const other = others.find(
      ({ place }) => place.type !== first?.place.type || place.wrapper.token !== first.place.wrapper.token,
    );
    if (first === undefined || other === undefined) return [];
    const task = nameIn(first.place, first.method);
    const [one, two] = [first, other].map(({ place }) => `${place.className} (${String(tokenName(place))})`);
    return [
      `the task '${task}' would be run by either ${one} or ${two}, and the other one's runs count as done: ` +
        `override the method in one class, with a 'name' of its own`,
    ];
  });
}

function hidden(place: Place): string[] {
  return place.methods
    .filter(({ key }) => place.scope === 'singleton' && Object.hasOwn(place.target, key))
    .filter((method) => reachedBy(method, place.target)?.name.startsWith('bound ') !== true)
    .map(
      (method) => `${called(place, method)} is hidden by a property of the instance: calls do not reach it`,
    );
}

function providedTwice(places: readonly Place[]): string[] {
  const singletons = places.filter(({ scope, methods }) => scope === 'singleton' && methods.length > 0);
  return groups(singletons, ({ type }) => type).flatMap((found) => {
    const [first] = found;
    if (first === undefined || found.length < 2) return [];
    const modules = found.map(({ moduleName }) => moduleName).join(', ');
    return [
      `${first.className} is provided ${found.length} times (${modules}): every instance has timers of its own, and ` +
        `the first one does what is taken over; export it from one module instead`,
    ];
  });
}

/** Names, for people. */
export function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(', ');
}

/** The task's name, or that of a lock without a key of its own. */
export function nameIn(place: Place, method: GuardedMethod): string {
  return taskNameOf(method, place.target);
}

/** Whether a started node can run the method by itself. */
export function canRunAgain(method: GuardedMethod): boolean {
  if (method.kind !== 'single-run' || method.guard !== undefined) return false;
  return method.original.length === 0 || optionsOf(method).input !== undefined;
}

function runsOf(places: readonly Place[]): { readonly place: Place; readonly method: GuardedMethod }[] {
  return places.flatMap((place) =>
    place.methods
      .filter(({ kind, guard }) => kind === 'single-run' && guard === undefined)
      .map((method) => ({ place, method })),
  );
}

function groups<T>(all: readonly T[], keyOf: (one: T) => unknown): T[][] {
  const found = new Map<unknown, T[]>();
  for (const one of all) found.set(keyOf(one), [...(found.get(keyOf(one)) ?? []), one]);
  return [...found.values()];
}

function tokenName({ wrapper, moduleName }: Place): string {
  const { token } = wrapper;
  return `${typeof token === 'function' ? token.name : String(token)} of ${moduleName}`;
}
