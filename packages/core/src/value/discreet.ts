/**
 * What may be told of an error that came out of somebody's client library. Errors end in logs and in other people's
 * hands, and libraries hang more on them than a sentence: ioredis the refused command with its arguments, which for
 * AUTH is the password; node-postgres the whole client; many the address with user and password. An error without any
 * of that is passed on as it is, the same object. Of any other a copy is passed on, of the same class, with its words,
 * its code, and those of its causes.
 */

/** Properties whose very name says that nobody should read them. */
const SECRET_NAME = /pass|pwd|secret|credential|authorization/i;
const ADDRESS = /:\/\/[^\s"'<>]*@/g;
/** Deeper causes are left out: a chain can be a ring. */
const MAX_DEPTH = 8;

/** The error, or what may be told of it. A value that is no error is told in one sentence. */
export function discreet(error: unknown, depth = 0): unknown {
  if (typeof error === 'string') return withoutAddress(error);
  if (typeof error !== 'object' || error === null) return error;
  if (!isError(error)) return new Error('what was thrown is no error');
  if (depth > MAX_DEPTH) return new Error('further causes are left out');
  const told = new Map<PropertyKey, PropertyDescriptor>();
  let isWhole = true;
  for (const key of Reflect.ownKeys(error)) {
    const descriptor = Object.getOwnPropertyDescriptor(error, key)!;
    // The stack of a V8 error can be an accessor. What an accessor of a library shows is not known.
    const value: unknown = key === 'stack' ? error.stack : (descriptor.value as unknown);
    const shown = isAccessor(descriptor) && key !== 'stack' ? HIDDEN : tellable(key, value, depth);
    if (shown !== value) isWhole = false;
    if (shown !== HIDDEN) told.set(key, { ...plain(descriptor), value: shown });
  }
  return isWhole ? error : copyOf(error, told);
}

/** A text without user and password in the addresses that it names. */
function withoutAddress(text: string): string {
  return text.replace(ADDRESS, '://…@');
}

const HIDDEN = Symbol('hidden');

function tellable(key: PropertyKey, value: unknown, depth: number): unknown {
  if (SECRET_NAME.test(String(key))) return HIDDEN;
  if (typeof value === 'string') return withoutAddress(value);
  if (typeof value === 'function') return HIDDEN;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return tellableList(value, depth);
  return isError(value) || key === 'cause' ? discreet(value, depth + 1) : HIDDEN;
}

/** The errors that an `AggregateError` is made of; a list of anything else may hold anything. */
function tellableList(values: readonly unknown[], depth: number): unknown {
  if (!values.every(isError)) return HIDDEN;
  const told = values.map((value) => discreet(value, depth + 1));
  return told.every((error, index) => error === values[index]) ? values : told;
}

function copyOf(error: Error, told: ReadonlyMap<PropertyKey, PropertyDescriptor>): Error {
  const copy = new Error();
  Object.setPrototypeOf(copy, Object.getPrototypeOf(error) as object | null);
  delete (copy as { stack?: string }).stack;
  for (const [key, descriptor] of told) Object.defineProperty(copy, key, descriptor);
  return copy;
}

/** Also one of another realm: a test runner has its own, and Node's errors come from outside of it. */
function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
}

function isAccessor(descriptor: PropertyDescriptor): boolean {
  return descriptor.get !== undefined || descriptor.set !== undefined;
}

function plain({ enumerable = false }: PropertyDescriptor): PropertyDescriptor {
  return { configurable: true, writable: true, enumerable };
}
