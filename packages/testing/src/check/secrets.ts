/**
 * Secrets of a client that was handed in (S6): none of them may be in what an application is told. Looks as a person
 * who prints an error looks, and as a logger that walks it: the printed form, and every property, cause and entry,
 * hidden ones too.
 */
import { inspect } from 'node:util';
import { EVENT_NAMES, type Guard } from '@guard/core';

const MAX_DEPTH = 10;

/** Where one of the secrets stands in what was told, each as a path; empty where none does. */
export function secretsIn(told: unknown, secrets: readonly string[]): string[] {
  const found: string[] = [];
  const texts = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]);
  const look = (path: string, text: string): void => {
    if (texts.some((secret) => text.includes(secret))) found.push(path);
  };
  const seen = new Set<object>();
  const walk = (path: string, value: unknown, depth: number): void => {
    if (typeof value === 'string') return look(path, value);
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return;
    if (depth > MAX_DEPTH || seen.has(value)) return;
    seen.add(value);
    if (value instanceof Map || value instanceof Set) walk(`${path}.entries()`, [...value], depth + 1);
    for (const key of Reflect.ownKeys(value)) {
      walk(`${path}.${String(key)}`, Reflect.get(value, key) as unknown, depth + 1);
    }
  };
  look('printed', inspect(told, { depth: MAX_DEPTH, showHidden: true, maxStringLength: null }));
  look('as a string', String(told));
  walk('it', told, 0);
  return found;
}

/** What a guard tells from now on, event by event, in one list that grows. */
export function everythingTold(guard: Guard): readonly unknown[] {
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
