/** Values as they are stored: JSON, checked and measured before anything is sent. */
import { GuardError, invalidArgument } from './error.js';

/**
 * A value as JSON text.
 *
 * @throws GuardError `invalid-argument`: not JSON (`undefined`, a function, a bigint, a cycle), not without loss (a Map,
 * NaN, an error), or over `maxBytes`.
 */
export function encodeJson(argument: string, value: unknown, maxBytes: number): string {
  const text = stringify(argument, value);
  // Three bytes is the most that one UTF-16 unit can need, so most values are settled without counting.
  const bytes = text.length * 3 > maxBytes ? Buffer.byteLength(text) : 0;
  if (bytes <= maxBytes) return text;
  throw new GuardError(
    'invalid-argument',
    `${argument} is too large: ${bytes} bytes of JSON, the limit is ${maxBytes}`,
  );
}

function stringify(argument: string, value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, (name, held: unknown) => faithful(argument, name, held));
  } catch (cause) {
    if (GuardError.is(cause)) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new GuardError('invalid-argument', `${argument} is not JSON: ${why}`, { cause });
  }
  if (text === undefined) throw invalidArgument(argument, value, 'must be JSON');
  return text;
}

/** Whether nothing of the object is lost when only its own properties are written. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || !LOSSY.some((kind) => value instanceof kind);
}

/** Objects whose contents are not in their properties: JSON would make `{}` of them. */
const LOSSY = [Map, Set, WeakMap, WeakSet, Promise, RegExp, Error] as const;

/** Refuses what JSON would silently turn into something else. */
function faithful(argument: string, name: string, held: unknown): unknown {
  const lost =
    (typeof held === 'number' && !Number.isFinite(held)) ||
    typeof held === 'function' ||
    typeof held === 'symbol' ||
    (typeof held === 'object' && held !== null && !isPlain(held));
  const place = name === '' ? argument : `${argument} at '${name}'`;
  if (lost) throw invalidArgument(place, held, 'must be JSON: it would be lost');
  return held;
}
