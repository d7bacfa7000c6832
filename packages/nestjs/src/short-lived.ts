/**
 * Providers whose instances come and go. Each instance is bound when the container makes it, so that a call is guarded
 * in every scope; and a run that Guard itself begins gets an instance of its own, made as for a request, with the run
 * as the request.
 */
import { bindGuard, type Guard, guardedMethods, type Run } from '@guard/core';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import { overriddenOf } from './overrides.js';
import { isFactory, type Place, type Wrapper } from './places.js';

/** Binds the instances of a place from now on, and those that are there; registers its tasks. */
export function bindShortLived(place: Place, guard: Guard): void {
  bindGuard(place.target, guard, { perRun: (run) => instanceFor(place.wrapper, run) });
  bindMade(place.wrapper, () => guard);
  if (place.scope !== 'transient') return;
  for (const host of place.wrapper.getStaticTransientInstances()) {
    if (host?.isConstructorCalled === true) bindGuard(host.instance as object, guard);
  }
}

/** Binds whatever a request-scoped or transient factory answers from now on. */
export function bindAnswers(wrapper: Wrapper, guardOf: (type: unknown) => Guard | undefined): void {
  if (isFactory(wrapper)) bindMade(wrapper, (instance) => guardOf(instance.constructor));
}

/**
 * The container makes instances by calling `metatype` of its wrapper, which belongs to this application alone; the
 * class itself, which other applications in the process may share, stays as it is.
 */
function bindMade(wrapper: Wrapper, guardOf: (instance: object) => Guard | undefined): void {
  const { metatype } = wrapper;
  if (typeof metatype !== 'function') return;
  const bound = <T>(instance: T): T => {
    if (typeof instance === 'object' && instance !== null && isGuarded(instance)) {
      const guard = guardOf(instance);
      if (guard !== undefined) bindGuard(instance, guard);
    }
    return instance;
  };
  wrapper.metatype = new Proxy(metatype, {
    construct: (target, given, newTarget) => bound(Reflect.construct(target, given, newTarget) as object),
    apply: (target, self, given) => {
      const answer: unknown = Reflect.apply(target, self, given);
      return answer instanceof Promise ? answer.then(bound) : bound(answer);
    },
  });
  copyMetadata(metatype, wrapper.metatype);
}

/** Also where only what it overrides is guarded: it may call super. */
function isGuarded(instance: object): boolean {
  return guardedMethods(instance).length > 0 || overriddenOf(instance).length > 0;
}

/** Others read what decorators left on the class by asking for the metadata of `metatype`. */
function copyMetadata(from: object, to: object): void {
  const { getOwnMetadataKeys, getOwnMetadata, defineMetadata } = Reflect as unknown as {
    readonly getOwnMetadataKeys: (target: object) => readonly unknown[];
    readonly getOwnMetadata: (key: unknown, target: object) => unknown;
    readonly defineMetadata: (key: unknown, value: unknown, target: object) => void;
  };
  for (const key of getOwnMetadataKeys(from)) defineMetadata(key, getOwnMetadata(key, from), to);
}

async function instanceFor({ host, token }: Wrapper, run: Run): Promise<object> {
  const moduleRef = host?.getProviderByKey<ModuleRef>(ModuleRef).instance;
  if (moduleRef === undefined) throw new Error(`the module of ${String(token)} is gone`);
  const contextId = ContextIdFactory.create();
  moduleRef.registerRequestByContextId(run, contextId);
  return moduleRef.resolve<object>(token as string, contextId, { strict: true });
}
