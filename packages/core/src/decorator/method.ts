/**
 * One decorator for both forms that TypeScript has. They differ in their arguments only: a standard decorator gets
 * the function and a context, a legacy one the prototype, the name and a descriptor. Everything that knows more than
 * "wrap this function" is elsewhere.
 */
import { GuardError } from '../value/error.js';

/** A method, as decorators see it. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a constraint over every method there is
export type AnyMethod = (this: any, ...args: any[]) => any;

/** The arguments of any method. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a method may have any
export type AnyArguments = any[];

/** A method whose first arguments are these; options that name fewer do for longer lists. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever follows, on whatever object
export type Promising<A extends readonly unknown[], R> = (this: any, ...args: [...A, ...any[]]) => Promise<R>;

/** A decorator of methods of type `M`, standard and legacy. Generic over the whole function, so generics survive. */
export interface GuardDecorator<M extends AnyMethod> {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- methods of every class
  <T extends M>(value: T, context: ClassMethodDecoratorContext<any, T>): T | void;
  <T extends M>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<T>,
  ): TypedPropertyDescriptor<T> | void;
}

/** A method that is being decorated. */
export interface MethodPlace {
  readonly original: AnyMethod;
  readonly key: string | symbol;
  /** The class whose method it is, where that is known while the class is being defined. */
  readonly owner: object | undefined;
  readonly isPrivate: boolean;
  readonly isStatic: boolean;
  /** Standard form only: calls back with each new instance (a static method: once, with the class). */
  readonly onInstance: ((found: (instance: object) => void) => void) | undefined;
}

/**
 * Makes a decorator of a function that wraps.
 *
 * The decorator throws GuardError `invalid-argument` while the class is being defined, if it stands on anything but a
 * method: what it cannot guard must not look guarded.
 */
export function methodDecorator(
  name: string,
  wrap: (place: MethodPlace) => AnyMethod,
): GuardDecorator<AnyMethod> {
  const decorate = (first: unknown, second: unknown, third: unknown): unknown => {
    if (isContext(second)) {
      if (second.kind !== 'method') throw misuse(name, second.kind, second.name);
      return wrapped(name, wrap, standardPlace(first as AnyMethod, second));
    }
    const descriptor = third as PropertyDescriptor | undefined;
    if (typeof first === 'function' && second === undefined) throw misuse(name, 'class', first.name);
    const key = second as string | symbol;
    if (typeof third === 'number') throw misuse(name, 'parameter', key);
    if (typeof descriptor !== 'object') throw misuse(name, 'field', key);
    if (typeof descriptor.value !== 'function') throw misuse(name, 'getter or setter', key);
    const isStatic = typeof first === 'function';
    const owner = isStatic ? first : (first as { constructor: object }).constructor;
    const original = descriptor.value as AnyMethod;
    const place = { original, key, owner, isStatic, isPrivate: false, onInstance: undefined };
    descriptor.value = wrapped(name, wrap, place);
    return descriptor;
  };
  return decorate as GuardDecorator<AnyMethod>;
}

function standardPlace(original: AnyMethod, context: ClassMethodDecoratorContext): MethodPlace {
  return {
    original,
    key: context.name,
    owner: undefined,
    isPrivate: context.private,
    isStatic: context.static,
    onInstance: (found) =>
      context.addInitializer(function (this: unknown) {
        found(this as object);
      }),
  };
}

function wrapped(name: string, wrap: (place: MethodPlace) => AnyMethod, place: MethodPlace): AnyMethod {
  const kind = Object.prototype.toString.call(place.original);
  if (kind.includes('GeneratorFunction')) throw misuse(name, 'generator', place.key);
  return lookingLike(place.original, wrap(place));
}

/** The wrapper with the name, the length, the properties and the reflect-metadata of the method it stands for. */
export function lookingLike(original: AnyMethod, wrapper: AnyMethod): AnyMethod {
  for (const property of ['name', 'length'] as const) {
    Object.defineProperty(wrapper, property, { value: original[property], configurable: true });
  }
  Object.assign(wrapper, original);
  const { getOwnMetadataKeys, getOwnMetadata, defineMetadata } = Reflect as Partial<MetadataReflect>;
  // Whoever put metadata there (a scheduler, a router) reads it from the method that it finds in the class: this one.
  for (const key of getOwnMetadataKeys?.(original) ?? []) {
    defineMetadata?.(key, getOwnMetadata?.(key, original), wrapper);
  }
  return wrapper;
}

/** What the package reflect-metadata adds to `Reflect`, if the application loads it. */
interface MetadataReflect {
  readonly getOwnMetadataKeys: (target: object) => readonly unknown[];
  readonly getOwnMetadata: (key: unknown, target: object) => unknown;
  readonly defineMetadata: (key: unknown, value: unknown, target: object) => void;
}

function isContext(value: unknown): value is ClassMethodDecoratorContext & { readonly kind: string } {
  return typeof value === 'object' && value !== null && 'kind' in value;
}

function misuse(name: string, kind: string, member: string | symbol | undefined): GuardError {
  const where = member === undefined ? '' : ` ${String(member)}`;
  return new GuardError(
    'invalid-argument',
    `@${name}() guards methods only, and it stands on the ${kind}${where}: write it as an ordinary async method`,
  );
}

/**
 * Refuses a decorator that was written without its parentheses. A legacy compiler then hands the class in as options,
 * and the method would run unguarded.
 *
 * @throws GuardError `invalid-argument`.
 */
export function checkCalled(decorator: string, more: readonly unknown[]): void {
  if (more.length === 0) return;
  throw new GuardError('invalid-argument', `${decorator} needs parentheses: write ${decorator}()`);
}
