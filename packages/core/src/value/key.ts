/**
 * Keys and how they stay inside their namespace. A key is compared byte by byte on every backend; what leaves this
 * file is one string, `namespace/section/key`, in which the namespace holds no slash and the section is Guard's own,
 * so no key can name an entry of another namespace or of another kind.
 */
import { createHash } from 'node:crypto';
import { GuardError, invalidArgument, show } from './error.js';
import { isPlain } from './json.js';

/**
 * What names a lock, a state entry or a run: a text, a number or a bigint (its decimal text), or several of these.
 * `['account', 42]` is `'account:42'`; a colon or backslash inside a part is escaped by a backslash, so different
 * arrays are different keys.
 */
export type Key = string | number | bigint | readonly (string | number | bigint)[];

/** The longest key, in bytes of UTF-8, without namespace and section. The same on every backend. */
export const MAX_KEY_BYTES = 512;
/** The longest namespace, in bytes of UTF-8. */
export const MAX_NAMESPACE_BYTES = 64;
/** The longest key a backend is ever handed: namespace, section, task and key together. */
export const MAX_FULL_KEY_BYTES = 1_280;

/** What a full key is for. Each kind of thing lives in a section of its own. */
export type Section = 'lock' | 'task' | 'node' | 'state' | 'run' | 'fence';

/**
 * One key as text.
 *
 * @throws GuardError `invalid-argument`: empty, not well-formed Unicode, with U+0000, over 512 bytes of UTF-8, or
 * not a key at all.
 */
export function encodeKey(argument: string, key: unknown): string {
  const text = Array.isArray(key) ? encodeParts(argument, key) : encodePart(argument, key);
  return checkText(argument, text, MAX_KEY_BYTES);
}

/** Parts joined so that different lists are different texts. */
export function joinParts(parts: readonly string[]): string {
  return parts.map(escapePart).join(':');
}

/** The text that backends see: no key can leave its namespace or its section. */
export function fullKey(namespace: string, section: Section, key: string): string {
  return `${namespace}/${section}/${key}`;
}

/** The user's part of a full key. */
export function shortKey(full: string): string {
  const first = full.indexOf('/');
  return full.slice(full.indexOf('/', first + 1) + 1);
}

/**
 * A namespace, checked.
 *
 * @throws GuardError `invalid-argument`: empty, not well-formed, with a slash or U+0000, over 64 bytes.
 */
export function checkNamespace(namespace: unknown): string {
  if (typeof namespace !== 'string') throw invalidArgument('namespace', namespace, 'must be a text');
  if (namespace.includes('/')) throw invalidArgument('namespace', namespace, `must not contain '/'`);
  return checkText('namespace', namespace, MAX_NAMESPACE_BYTES);
}

/**
 * A prefix of keys, as `state.list` takes it: like a key, but it may be empty.
 *
 * @throws GuardError `invalid-argument` as for keys.
 */
export function checkPrefix(argument: string, prefix: unknown): string {
  if (prefix === '') return '';
  if (typeof prefix !== 'string') throw invalidArgument(argument, prefix, 'must be a text');
  return checkText(argument, prefix, MAX_KEY_BYTES);
}

/**
 * A key made of any JSON value: the same for equal values, whatever the order of their properties.
 *
 * @throws GuardError `invalid-argument`: the value holds something that JSON does not carry (a function, a symbol,
 * `undefined` inside an array, a bigint, a number that is not finite, a cycle).
 */
export function fingerprint(value: unknown): string {
  return createHash('sha256').update(canonical(value, new Set())).digest('base64url');
}

function encodeParts(argument: string, parts: readonly unknown[]): string {
  if (parts.length === 0) throw invalidArgument(argument, parts, 'must not be empty');
  // Not `parts.map`, which passes over what was left out.
  return Array.from(parts, (part, index) => escapePart(encodePart(`${argument}[${index}]`, part))).join(':');
}

function encodePart(argument: string, part: unknown): string {
  if (part === '') throw invalidArgument(argument, part, 'must not be empty');
  if (typeof part === 'string') return part;
  if (typeof part === 'bigint') return part.toString();
  if (typeof part === 'number' && Number.isFinite(part)) return String(part);
  throw invalidArgument(argument, part, 'must be a text, a number, a bigint or an array of these');
}

function escapePart(part: string): string {
  return part.includes(':') || part.includes('\\') ? part.replace(/[\\:]/g, '\\$&') : part;
}

function checkText(argument: string, text: string, maxBytes: number): string {
  if (text === '') throw invalidArgument(argument, text, 'must not be empty');
  // Three bytes is the most that one UTF-16 unit can need, so most keys are settled without counting.
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) {
    const bytes = Buffer.byteLength(text);
    throw new GuardError(
      'invalid-argument',
      `${argument} must be at most ${maxBytes} bytes of UTF-8, got ${bytes}: ${show(text)}`,
    );
  }
  if (text.includes('\0')) throw invalidArgument(argument, text, 'must not contain U+0000');
  if (!text.isWellFormed())
    throw invalidArgument(argument, text, 'must be well-formed Unicode (it holds a lone surrogate)');
  return text;
}

function canonical(value: unknown, above: Set<unknown>): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value !== 'object') throw invalidArgument('fingerprint value', value, 'must be JSON');
  if (above.has(value)) throw invalidArgument('fingerprint value', value, 'must not contain itself');
  above.add(value);
  const text = Array.isArray(value) ? canonicalArray(value, above) : canonicalObject(value, above);
  above.delete(value);
  return text;
}

function canonicalArray(values: readonly unknown[], above: Set<unknown>): string {
  return `[${values.map((value) => canonical(value, above)).join(',')}]`;
}

function canonicalObject(value: object, above: Set<unknown>): string {
  const { toJSON } = value as { readonly toJSON?: () => unknown };
  const json: unknown = typeof toJSON === 'function' ? toJSON.call(value) : value;
  if (json !== value) return canonical(json, above);
  if (!isPlain(value))
    throw invalidArgument('fingerprint value', value, 'must be JSON: plain objects and arrays only');
  const entries = Object.entries(value).filter(([, held]) => held !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, held]) => `${JSON.stringify(name)}:${canonical(held, above)}`).join(',')}}`;
}
