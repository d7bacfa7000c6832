/**
 * Under which tokens guards are found in the container, and the decorators that name one. Tokens are global symbols, so
 * that the ESM and the CommonJS build of this package find each other's guards in one application.
 */
import { GuardError } from '@guard/core';
import { Inject, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { checkName } from './options.js';

const GUARDED_BY = '@guard/nestjs/guarded-by';
const reflector = new Reflector();

/** The name of the guard that is registered without one. */
export const DEFAULT_GUARD_NAME = 'default';

/** The token of a guard, for factories (`inject: [getGuardToken()]`) and tests. */
export function getGuardToken(name: string = DEFAULT_GUARD_NAME): symbol {
  return Symbol.for(`@guard/nestjs/guard/${checkName(name)}`);
}

/** The token of the options that a guard is made of: override it in a test to give a whole application another guard. */
export function getGuardOptionsToken(name: string = DEFAULT_GUARD_NAME): symbol {
  return Symbol.for(`@guard/nestjs/options/${checkName(name)}`);
}

/** The token of what this package knows about a guard. */
export function registrationToken(name: string): symbol {
  return Symbol.for(`@guard/nestjs/registration/${name}`);
}

/** Injects a guard: `constructor(@InjectGuard() private readonly guard: Guard) {}`. */
export function InjectGuard(name: string = DEFAULT_GUARD_NAME): ParameterDecorator & PropertyDecorator {
  return Inject(getGuardToken(name));
}

/**
 * Which guard serves the decorated methods of a class, and of those that extend it. Without it: the one that is
 * registered without a name. It has nothing to do with route guards.
 */
export function GuardedBy(name: string): ClassDecorator {
  const mark = SetMetadata(GUARDED_BY, checkName(name));
  // Compilers that check no types let it stand on a method too, where nothing would look for it.
  const decorate = (type: unknown, place?: unknown): void => {
    const isClass =
      typeof place === 'object' ? (place as { kind?: unknown }).kind === 'class' : place === undefined;
    if (typeof type !== 'function' || !isClass) throw misplaced(name);
    mark(type);
  };
  return decorate;
}

function misplaced(name: string): GuardError {
  return new GuardError(
    'invalid-argument',
    `@GuardedBy('${name}') stands on classes only; a method names a guard by the option 'guard' of its decorator`,
  );
}

/** The name of the guard that serves a class. */
export function guardNameOf(type: unknown): string {
  if (typeof type !== 'function') return DEFAULT_GUARD_NAME;
  return reflector.get<string | undefined>(GUARDED_BY, type as () => void) ?? DEFAULT_GUARD_NAME;
}
