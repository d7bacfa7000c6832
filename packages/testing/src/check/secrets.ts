/**
 * Secrets of a client that was handed in (S6): none of them may be in what an application is told. Looks as a person
 * who prints an error looks, and as a logger that walks it: the printed form, and every property, cause and entry,
 * hidden ones too.
 */
import { inspect } from 'node:util';
import type { Guard, GuardEvents } from '@guard/core';

const MAX_DEPTH = 10;
/** Every event that a guard has. The type says when one is missing. */
const EVENTS: Readonly<Record<keyof GuardEvents, true>> = {
  'lock-granted': true,
  'lock-released': true,
  'lock-lost': true,
  'lock-suspect': true,
  'lock-forced': true,
  'claim-queued': true,
  'claim-cancelled': true,
  'run-started': true,
  'run-completed': true,
  'run-failed': true,
  'run-skipped': true,
  'run-taken-over': true,
  'run-expired': true,
  'run-on-hold': true,
  'run-refused': true,
  'run-long': true,
  'run-unguarded': true,
  alarm: true,
  'backend-unavailable': true,
  'backend-recovered': true,
  error: true,
};

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

/** Everything that a guard tells from now on, event by event, in one list that grows. */
export function everythingTold(guard: Guard): readonly unknown[] {
  const told: unknown[] = [];
  for (const event of Object.keys(EVENTS) as (keyof GuardEvents)[]) {
    guard.on(event, (detail: unknown) => void told.push({ event, detail }));
  }
  return told;
}
