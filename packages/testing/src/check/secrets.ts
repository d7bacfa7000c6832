/**
 * Secrets of a client that was handed in (S6): none of them may be in what an application is told. Looks as a person
 * who prints an error looks, and as a logger that walks it: the printed form, and every property, cause and entry,
 * hidden ones and bytes too. A secret counts as told in any form that somebody could read back: as it is, encoded for
 * an address or a form, escaped as JSON does it, in base64, in hexadecimal.
 */
import { inspect, types } from 'node:util';
import { EVENT_NAMES, invalidArgument, type Guard } from '@guard/core';
import { requireGuard } from '../argument.js';

const MAX_DEPTH = 10;
/** Shorter texts in base64 or hexadecimal are found anywhere. */
const MIN_ENCODED = 5;

/** Where one of the secrets stands in what was told, each as a path; empty where none does. */
export function secretsIn(told: unknown, secrets: readonly string[]): string[] {
  const areTexts = Array.isArray(secrets) && secrets.every((one) => typeof one === 'string' && one !== '');
  // Whoever looks for nothing finds nothing.
  if (!areTexts || secrets.length === 0) {
    throw invalidArgument('secrets', secrets, 'must be an array of at least one text, none of them empty');
  }
  const found: string[] = [];
  const forms = secrets.flatMap(formsOf);
  const look = (path: string, text: string): void => {
    if (forms.some((form) => text.includes(form))) found.push(path);
  };
  const seen = new Set<object>();
  // What a getter, a printer or a proxy throws is told as well.
  const attempt = (path: string, depth: number, read: () => void): void => {
    try {
      read();
    } catch (error) {
      walk(`${path} (thrown)`, error, depth + 1);
    }
  };
  const walk = (path: string, value: unknown, depth: number): void => {
    if (typeof value === 'string') return look(path, value);
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return;
    if (depth > MAX_DEPTH || seen.has(value)) return;
    seen.add(value);
    const bytes = bytesOf(value);
    if (bytes !== undefined) look(path, `${bytes.toString('utf8')} ${bytes.toString('latin1')}`);
    if (ArrayBuffer.isView(value)) return;
    if (value instanceof Map || value instanceof Set) walk(`${path}.entries()`, [...value], depth + 1);
    attempt(path, depth, () => {
      for (const key of Reflect.ownKeys(value)) {
        const place = `${path}.${String(key)}`;
        look(place, String(key));
        attempt(place, depth, () => walk(place, Reflect.get(value, key), depth + 1));
      }
    });
  };
  attempt('printed', 0, () =>
    look('printed', inspect(told, { depth: MAX_DEPTH, showHidden: true, maxStringLength: null })),
  );
  attempt('as a string', 0, () => look('as a string', String(told)));
  walk('it', told, 0);
  return found;
}

/** The forms of a secret that give it away. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const encoded = [bytes.toString('hex'), bytes.toString('hex').toUpperCase()];
  // In the middle of a longer text, base64 begins at one of three places, and its edges mix with the neighbours.
  for (const before of [0, 1, 2]) {
    const first = Math.ceil((before * 8) / 6);
    const last = Math.floor(((before + bytes.length) * 8) / 6);
    const all = Buffer.concat([Buffer.alloc(before), bytes]);
    encoded.push(all.toString('base64').slice(first, last), all.toString('base64url').slice(first, last));
  }
  const long = encoded.filter((form) => form.length >= MIN_ENCODED);
  return [...new Set([secret, ...escapedFormsOf(secret), ...long])];
}

/** As it stands in an address, in a form, and in JSON: alone, and inside of JSON that is a text of JSON again. */
function escapedFormsOf(secret: string): string[] {
  const address = new URL('guard://host');
  address.password = secret;
  const encoded = [
    encodeURIComponent(secret),
    address.password,
    new URLSearchParams({ '': secret }).toString().slice(1),
  ];
  const lower = encoded.map((form) => form.replace(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase()));
  const json = JSON.stringify(secret).slice(1, -1);
  return [...encoded, ...lower, json, JSON.stringify(json).slice(1, -1)];
}

/** The bytes of what is bytes, or a list of them, as JSON makes it of a buffer. */
function bytesOf(value: object): Buffer | undefined {
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (types.isAnyArrayBuffer(value)) return Buffer.from(value);
  const isList = Array.isArray(value) && value.length > 0;
  return isList && value.every((one) => Number.isInteger(one) && one >= 0 && one < 256)
    ? Buffer.from(value as number[])
    : undefined;
}

/** What a guard tells from now on, event by event, in one list that grows. */
export function everythingTold(guard: Guard): readonly unknown[] {
  requireGuard('guard', guard);
  const told: unknown[] = [];
  for (const event of EVENT_NAMES) {
    guard.on(event, (detail: unknown) => void told.push({ event, detail }));
  }
  return told;
}

/**
 * What a guard says whose backends are in trouble: the outcome of every kind of call, and its events. For `secretsIn`.
 * Closes the guard; takes as long as the longest of its budgets.
 */
export async function everythingSaid(guard: Guard): Promise<readonly unknown[]> {
  const told = everythingTold(guard);
  const calls = Object.entries(CALLS).map(([name, call]) => outcomeOf(name, () => call(guard)));
  const outcomes = await Promise.all(calls);
  return [...outcomes, await outcomeOf('close', () => guard.close()), ...told];
}

async function outcomeOf(name: string, call: () => Promise<unknown>): Promise<object> {
  try {
    return { name, answer: await call() };
  } catch (error) {
    return { name, error };
  }
}

const WAIT_MS = 500;
const CALLS: Readonly<Record<string, (guard: Guard) => Promise<unknown>>> = {
  acquire: (guard) => guard.acquire('secrets', { wait: WAIT_MS }),
  tryAcquire: (guard) => guard.tryAcquire('secrets of a try'),
  withLock: (guard) => guard.withLock('secrets of work', { wait: WAIT_MS }, async () => undefined),
  inspect: (guard) => guard.inspect('secrets'),
  forceRelease: (guard) => guard.forceRelease('secrets', { note: 'for a test' }),
  get: (guard) => guard.state.get('secrets'),
  create: (guard) => guard.state.create('secrets', 1),
  list: async (guard) => {
    for await (const entry of guard.state.list('secrets')) return entry;
    return undefined;
  },
  watch: async (guard) => (await guard.state.watch('secrets', () => undefined)).close(),
  run: (guard) => guard.run('secrets', { key: 'k' }, async () => undefined),
  runs: (guard) => guard.runs.get('secrets', 'k'),
  start: (guard) => guard.start(),
};
