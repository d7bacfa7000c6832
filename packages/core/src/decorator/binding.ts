/**
 * Which guard decorated methods use. Binding also registers what a node can run again by itself: methods without
 * arguments, and those whose `input` turns their arguments into JSON.
 */
import type { Guard } from '../api/guard.js';
import type { Run } from '../api/run.js';
import { processState } from '../runtime/context.js';
import { GuardError, invalidArgument } from '../value/error.js';
import { checkFunction, checkOptions } from '../value/options.js';
import { type GuardedMethod, guardedMethods, nameOf } from './registry.js';
import { besideOf } from './beside.js';
import { hasSchedule, settingsOf, type SingleRunOptions } from './single-run-options.js';

/** Tasks that were registered for decorated methods, by guard and name. */
const registered = new WeakMap<
  object,
  Map<string, { readonly method: GuardedMethod; readonly type: unknown }>
>();

/** Options of `bindGuard`. */
export interface BindOptions {
  /**
   * Makes the instance that does a run which a started node begins by itself: for classes whose instances do not live
   * as long as the guard. `instance` is then the prototype of the class; it is not bound itself, only its tasks are
   * registered, and whoever makes instances binds each.
   */
  readonly perRun?: (run: Run) => object | PromiseLike<object>;
}

/**
 * Makes `guard` serve the decorated methods of `instance` (an object, or a class for its static methods), and
 * registers its `@SingleRun` methods as tasks where a started node can run them again.
 *
 * Of several instances of one class the first one does what is taken over.
 *
 * @throws GuardError `invalid-argument`: two methods have one task name, or the instance has a guard already.
 */
export function bindGuard(instance: object, guard: Guard, options?: BindOptions): void {
  checkGuard(guard);
  checkOptions('bindGuard options', options, ['perRun']);
  const { perRun } = options ?? {};
  if (perRun !== undefined) checkFunction('perRun', perRun);
  const isObject = (typeof instance === 'object' && instance !== null) || typeof instance === 'function';
  if (!isObject) throw invalidArgument('instance', instance, 'must be an object');
  const bound = processState.bound.get(instance);
  if (bound !== undefined && bound !== guard) {
    throw new GuardError('invalid-argument', 'the instance is bound to another guard already');
  }
  const methods = guardedMethods(instance).filter(canRunAgain);
  for (const method of methods) register(method, instance, guard, perRun ?? (() => instance));
  if (perRun === undefined) processState.bound.set(instance, guard);
}

/** Makes `guard` serve every decorated method that has none nearer; `undefined` takes that back. */
export function setDefaultGuard(guard: Guard | undefined): void {
  if (guard !== undefined) checkGuard(guard);
  processState.defaultGuard = guard;
}

function canRunAgain(method: GuardedMethod): boolean {
  if (method.kind !== 'single-run' || method.guard !== undefined) return false;
  return method.original.length === 0 || (method.options as SingleRunOptions).input !== undefined;
}

function register(
  method: GuardedMethod,
  instance: object,
  guard: Guard,
  instanceFor: NonNullable<BindOptions['perRun']>,
): void {
  const tasks = registered.get(guard) ?? new Map<string, { method: GuardedMethod; type: unknown }>();
  registered.set(guard, tasks);
  const name = nameOf(method, instance);
  const type = typeof instance === 'function' ? instance : instance.constructor;
  const known = tasks.get(name);
  if (known?.method === method && known.type === type) return;
  if (known !== undefined) {
    const message = `two methods are the task '${name}': give one of them another 'name'`;
    throw new GuardError('invalid-argument', message);
  }
  checkOneSchedule(name, method, instance);
  const { compensate, ...settings } = settingsOf(method.options as SingleRunOptions);
  const undo = async (run: Run, input: unknown): Promise<unknown> =>
    compensate?.call(await instanceFor(run), run, ...argumentsOf(input));
  guard.task<unknown, unknown>(
    name,
    { ...settings, ...(compensate === undefined ? {} : { compensate: undo }) },
    async (run, input) =>
      method.original.apply(await instanceFor(run), argumentsOf(input) as unknown[]) as unknown,
  );
  tasks.set(name, { method, type });
}

/** Two timers for one method would both be right, and neither would know of the other. */
function checkOneSchedule(name: string, method: GuardedMethod, instance: object): void {
  if (!hasSchedule(method.options as SingleRunOptions) || besideOf(method, instance) === undefined) return;
  const message = `the method ${name} has two schedules: its own, and that of another decorator; take one away`;
  throw new GuardError('invalid-argument', message);
}

/** A list is the arguments, anything else is the only one. */
function argumentsOf(input: unknown): readonly unknown[] {
  if (input === undefined) return [];
  return Array.isArray(input) ? input : [input];
}

function checkGuard(guard: unknown): void {
  if (typeof guard !== 'object' || guard === null) throw invalidArgument('guard', guard, 'must be a guard');
  checkFunction('guard.withLock', (guard as Partial<Guard>).withLock);
  checkFunction('guard.run', (guard as Partial<Guard>).run);
}
