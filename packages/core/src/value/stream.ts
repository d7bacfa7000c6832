/** What must not leave work that is guarded: it would go on when the guard is gone. */

/** Something that begins or goes on after it was returned: a stream, an observable, an iterator of a generator. */
export function isStream(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Symbol.asyncIterator in value) return true;
  if (Symbol.iterator in value && 'next' in value && typeof value.next === 'function') return true;
  return 'subscribe' in value && typeof value.subscribe === 'function';
}
