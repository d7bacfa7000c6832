/**
 * Which methods are decorated, and which guard serves whom. Kept once per process, under global symbols, so that a
 * class that was decorated by one copy of this package can be bound by another.
 */
import type { Guard } from '../api/guard.js';
import { processState } from '../runtime/context.js';
import { GuardError } from '../value/error.js';
import type { AnyMethod, MethodPlace } from './method.js';

/** A guard, or how to get one when a call comes. */
export type GuardSource = Guard | (() => Guard);

/** One decorated method. */
export interface GuardedMethod {
  readonly kind: 'single-run' | 'locked';
  readonly key: string | symbol;
  readonly original: AnyMethod;
  /** `name` of the options. */
  readonly givenName: string | undefined;
  readonly guard: GuardSource | undefined;
  /** The options of the decorator as they were given. */
  readonly options: object;
  readonly isStatic: boolean;
  /** The class whose method it is, once that is known. */
  owner: object | undefined;
  /** The function that stands in for the original. */
  wrapper: AnyMethod | undefined;
}

interface Decorated {
  /** By class, then by name: a method may carry several decorators. */
  readonly byOwner: WeakMap<object, GuardedMethod[]>;
  readonly byWrapper: WeakMap<object, GuardedMethod>;
}

const SYMBOL = Symbol.for('@guard/core/decorated@1');
const MINIFIED = /^[A-Za-z_$]{1,2}\d?$/;

const decorated: Decorated = ((globalThis as { [SYMBOL]?: Decorated })[SYMBOL] ??= {
  byOwner: new WeakMap(),
  byWrapper: new WeakMap(),
});
const warned = new Set<string>();

/**
 * Remembers a method that is being decorated. Its class is known at once in the legacy form, and with the first
 * instance in the standard one.
 *
 * @throws GuardError `invalid-argument`: the method has this decorator already, or needs a name and has none.
 */
export function remember(place: MethodPlace, method: GuardedMethod): void {
  const { original, owner, onInstance, isPrivate } = place;
  if (decorated.byWrapper.get(original)?.kind === method.kind) {
    throw new GuardError('invalid-argument', `the method ${String(method.key)} is decorated twice`);
  }
  if (isPrivate && method.givenName === undefined) {
    throw new GuardError('invalid-argument', `the private method ${String(method.key)} needs a 'name'`);
  }
  if (method.wrapper !== undefined) decorated.byWrapper.set(method.wrapper, method);
  if (owner !== undefined) own(method, owner);
  // A private method is not found by its name: it belongs to the class of the instance.
  onInstance?.((instance) => {
    if (method.owner === undefined) own(method, isPrivate ? classOf(instance) : ownerOf(method, instance));
  });
}

/** Every decorated method of an instance or (its static ones) of a class, with what it is called. */
export function guardedMethods(target: object): readonly GuardedMethod[] {
  const found: GuardedMethod[] = [];
  for (const owner of classesOf(target)) {
    adoptMembers(owner, target);
    for (const method of decorated.byOwner.get(owner) ?? []) if (isIn(method, target)) found.push(method);
  }
  return found;
}

/**
 * The function that a call of this method on `self` reaches: another decorator may have put one of its own in front of
 * the wrapper. No getter is run.
 */
export function reachedBy({ key }: GuardedMethod, self: unknown): AnyMethod | undefined {
  for (let at: unknown = self; isObject(at); at = Object.getPrototypeOf(at) as unknown) {
    if (!Object.hasOwn(at, key)) continue;
    const value = valueIn(at, key);
    return typeof value === 'function' ? (value as AnyMethod) : undefined;
  }
  return undefined;
}

/**
 * What a method is called: its given name, or `Class.method` of the class that defines it.
 *
 * @throws GuardError `invalid-argument`: the class has no name.
 */
export function nameOf(method: GuardedMethod, self: unknown): string {
  if (method.givenName !== undefined) return method.givenName;
  if (method.owner === undefined && isObject(self)) own(method, ownerOf(method, self));
  const className = method.owner === undefined ? '' : classNameOf(method.owner);
  const member = String(method.key);
  if (className === '') {
    throw new GuardError('invalid-argument', `the class of ${member} has no name: give the method a 'name'`);
  }
  const name = `${className}.${member}`;
  if (MINIFIED.test(className)) warn(name);
  return name;
}

/**
 * The guard that serves a call: of the options, of the instance, or the process's default.
 *
 * @throws GuardError `not-bound` naming class and method.
 */
export function guardFor(method: GuardedMethod, self: unknown): Guard {
  const { guard } = method;
  if (guard !== undefined) return given(method, self, typeof guard === 'function' ? guard() : guard);
  for (let at: unknown = self; isObject(at); at = Object.getPrototypeOf(at) as unknown) {
    const bound = processState.bound.get(at);
    if (bound !== undefined) return bound as Guard;
  }
  if (processState.defaultGuard !== undefined) return processState.defaultGuard as Guard;
  throw new GuardError(
    'not-bound',
    `${calledBy(method, self)} has no guard: call bindGuard(instance, guard), setDefaultGuard(guard), or give it the option 'guard'`,
  );
}

/** A source that has no guard yet, because it was asked too early, must not look like a bug of Guard's. */
function given(method: GuardedMethod, self: unknown, guard: unknown): Guard {
  if (isObject(guard) && 'withLock' in guard) return guard as Guard;
  throw new GuardError(
    'not-bound',
    `${calledBy(method, self)} has no guard: its option 'guard' answered none`,
  );
}

/** What a person knows the method or function by. */
function calledBy({ givenName, key, kind }: GuardedMethod, self: unknown): string {
  if (isObject(self)) return `${classNameOf(classOf(self))}.${String(key)}`;
  return (
    givenName ??
    (String(key) || `a function without a name, given to ${kind === 'locked' ? 'locked' : 'singleRun'}(),`)
  );
}

/** Standard decorators know no class before its first instance: what stands in the class itself is found here. */
function adoptMembers(owner: object, target: object): void {
  const place: unknown = memberPlace(owner, target);
  // Any value can call itself somebody's constructor.
  if (!isObject(place)) return;
  for (const key of Reflect.ownKeys(place)) {
    const value = valueIn(place, key);
    const method = typeof value === 'function' ? decorated.byWrapper.get(value) : undefined;
    if (method !== undefined && method.owner === undefined) own(method, owner);
  }
}

function own(method: GuardedMethod, owner: object): void {
  method.owner = owner;
  const list = decorated.byOwner.get(owner) ?? [];
  decorated.byOwner.set(owner, [...list, method]);
}

/** The class in whose body the method stands: the one that has this very function, or else the nearest. */
function ownerOf(method: GuardedMethod, self: object): object {
  const holders = classesOf(self).filter((one) => Object.hasOwn(memberPlace(one, self), method.key));
  const exact = holders.find((one) => valueIn(memberPlace(one, self), method.key) === method.wrapper);
  return exact ?? holders[0] ?? classOf(self);
}

/** Whether calls on the target reach this method, rather than one that a subclass put in its place. */
function isIn(method: GuardedMethod, target: object): boolean {
  if (method.isStatic !== (typeof target === 'function')) return false;
  const nearest = classesOf(target).find((one) => Object.hasOwn(memberPlace(one, target), method.key));
  return nearest === undefined || nearest === method.owner;
}

/** The classes of an instance, or a class with those it extends, nearest first. */
function classesOf(target: object): readonly object[] {
  const classes: object[] = [];
  if (typeof target === 'function') {
    for (let at: unknown = target; typeof at === 'function'; at = Object.getPrototypeOf(at) as unknown) {
      classes.push(at);
    }
    return classes;
  }
  for (let at: unknown = target; isObject(at); at = Object.getPrototypeOf(at) as unknown) {
    if (Object.hasOwn(at, 'constructor')) classes.push(classOf(at));
  }
  return classes;
}

/** Where the members of a class are that a call on `self` can reach: statics on the class, others on its prototype. */
function memberPlace(owner: object, self: object): object {
  return typeof self === 'function' ? owner : ((owner as { prototype?: object }).prototype ?? owner);
}

/** The value of a property, without running a getter. */
function valueIn(holder: object, key: string | symbol): unknown {
  return Object.getOwnPropertyDescriptor(holder, key)?.value as unknown;
}

function classOf(self: object): object {
  return typeof self === 'function' ? self : (self.constructor ?? Object);
}

/** The name of a class; empty where it has none, or a static member of that name hides it. */
function classNameOf(owner: object): string {
  const { name } = owner as { readonly name?: unknown };
  return typeof name === 'string' ? name : '';
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

function warn(name: string): void {
  if (warned.has(name)) return;
  warned.add(name);
  process.emitWarning(
    `'${name}' looks minified: another build gives it another name, and the two would not know of each other. ` +
      `Give the method a 'name'.`,
    { type: 'GuardWarning', code: 'GUARD_MINIFIED_NAME' },
  );
}
