/**
 * Where decorated methods stand: every provider and controller of the container, one place for each. Nothing is
 * instantiated and no getter is run. Of a provider whose instances come and go (request-scoped, transient) the prototype
 * stands for all of them.
 */
import { types } from 'node:util';
import { type GuardedMethod, guardedMethods } from '@guard/core';
import type { DiscoveryService } from '@nestjs/core';
import { overriddenOf } from './overrides.js';

/** What the container knows about one provider. The type has no public name that both versions of Nest share. */
export type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** How long an instance lives. */
export type Scope = 'singleton' | 'transient' | 'request';

/** A provider or controller with decorated methods, of its own or overridden. */
export interface Place {
  readonly wrapper: Wrapper;
  /** The instance, or the prototype where there is none for good. */
  readonly target: object;
  readonly type: object;
  readonly className: string;
  readonly moduleName: string;
  readonly scope: Scope;
  readonly methods: readonly GuardedMethod[];
  /** Guarded methods of classes above that undecorated ones stand in for. */
  readonly overridden: readonly GuardedMethod[];
}

/** Every place of an application; one for each instance, under whatever tokens it is provided. */
export function placesOf(discovery: DiscoveryService): readonly Place[] {
  const wrappers = new Set([...discovery.getProviders(), ...discovery.getControllers()]);
  const seen = new Set<object>();
  return [...wrappers].flatMap((wrapper) => {
    const place = wrapper.isAlias ? undefined : placeOf(wrapper);
    if (place === undefined || (place.scope === 'singleton' && seen.has(place.target))) return [];
    seen.add(place.target);
    return [place];
  });
}

/** How long instances of a provider live. A singleton that depends on something request-scoped is none. */
export function scopeOf(wrapper: Wrapper): Scope {
  if (!wrapper.isDependencyTreeStatic()) return 'request';
  return wrapper.isTransient ? 'transient' : 'singleton';
}

/** Whether instances are what a factory answers. */
export function isFactory({ inject }: Wrapper): boolean {
  return inject !== undefined && inject !== null;
}

/** What a person knows the method by. */
export function called({ className }: Pick<Place, 'className'>, method: GuardedMethod): string {
  return `${className}.${String(method.key)}`;
}

function placeOf(wrapper: Wrapper): Place | undefined {
  const scope = scopeOf(wrapper);
  const target = scope === 'singleton' ? (wrapper.instance as unknown) : prototypeOf(wrapper);
  if (typeof target !== 'object' || target === null) return undefined;
  const methods = look(target, guardedMethods);
  const overridden = look(target, overriddenOf);
  if (methods.length === 0 && overridden.length === 0) return undefined;
  const type = target.constructor;
  const moduleName = wrapper.host?.name ?? 'unknown module';
  return { wrapper, target, type, className: type.name, moduleName, scope, methods, overridden };
}

/** A proxy may throw at whoever looks at it, and is passed by then. */
function look<T>(target: object, find: (at: object) => readonly T[]): readonly T[] {
  try {
    return find(target);
  } catch (error) {
    if (types.isProxy(target)) return [];
    throw error;
  }
}

/** What a factory makes is not known before it has made it. */
function prototypeOf(wrapper: Wrapper): unknown {
  if (isFactory(wrapper)) return undefined;
  return (wrapper.metatype as { readonly prototype?: unknown } | null)?.prototype;
}
