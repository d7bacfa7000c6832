/**
 * Names of keys in Redis. All keys of one lock, or of one state entry, carry the full key as their hash tag, so that a
 * cluster keeps them in one slot; a closing brace inside a key is escaped, so a tag ends where it should and no key
 * can name another's parts.
 */

/** Names of the three keys of a lock. */
export interface LockNames {
  readonly record: string;
  readonly queue: string;
  readonly tickets: string;
}

/** The keys of a lock. */
export function lockNames(key: string): LockNames {
  const record = `guard:{${tag(key)}}`;
  return { record, queue: `${record}:q`, tickets: `${record}:t` };
}

/** The tombstone of a claim on a lock. */
export function tombstoneName(names: LockNames, claim: string): string {
  return `${names.record}:c:${claim}`;
}

/** How the name of the record of any lock below a prefix begins. */
export function recordStart(prefix: string): string {
  return `guard:{${tag(prefix)}`;
}

/** Whether a name is that of a lock's record, not of its queue, tickets or tombstones. */
export function isRecord(name: string): boolean {
  return name.endsWith('}');
}

/** Before the session's id: the channel of a guard's notices. */
export const CHANNEL_PREFIX = 'guard:notices:';

/** The full key that a record's name stands for. */
export function keyOf(record: string): string {
  const start = record.indexOf('{') + 1;
  return unescape(record.slice(start, record.indexOf('}', start)));
}

/** The keys of all state entries, in the order of their bytes; kept where all keys can share a step. */
export const STATE_INDEX = 'guard:index';

/** Before the namespace: the channel on which writes are told. */
export const STATE_CHANNEL = 'guard:state:';

/** The hash of a state entry. */
export function entryName(key: string): string {
  return `guard:s:{${tag(key)}}`;
}

/** How the name of any entry below a prefix begins. */
export function entryStart(prefix: string): string {
  return `guard:s:{${tag(prefix)}`;
}

/** The full key that an entry's name stands for. */
export function entryKeyOf(name: string): string {
  return keyOf(name);
}

function tag(key: string): string {
  return key.replace(/[%}]/g, (found) => (found === '%' ? '%25' : '%7D'));
}

function unescape(text: string): string {
  return text.replace(/%7D|%25/g, (found) => (found === '%25' ? '%' : '}'));
}
