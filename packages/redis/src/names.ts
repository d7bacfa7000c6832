/**
 * Names of keys in Redis. What stands between the braces decides the slot in a cluster; all keys of one lock, and of
 * one state entry with its index, carry the same tag. The application's own text stands at the end of a name and
 * nowhere else, so no key can name another's parts.
 */
import { escapeGlob } from './connection.js';
import { TAGS, tagOf } from './slot.js';

/** Names of the three keys of a lock. */
export interface LockNames {
  readonly record: string;
  readonly queue: string;
  readonly tickets: string;
}

/** The keys of a lock. */
export function lockNames(key: string): LockNames {
  const start = `guard:{${tagOf(key)}}:`;
  return { record: `${start}l:${key}`, queue: `${start}q:${key}`, tickets: `${start}t:${key}` };
}

/** The keys of many locks, kind by kind, as the scripts take them: records, queues, tickets. */
export function lockKeys(keys: readonly string[]): string[] {
  return kindByKind(keys.map(lockNames));
}

/** The same with the tombstones of one claim on each: records, queues, tickets, tombstones. */
export function claimKeys(claims: readonly { readonly key: string; readonly claim: string }[]): string[] {
  const names = claims.map(({ key }) => lockNames(key));
  const tombstones = claims.map(({ key, claim }) => `guard:{${tagOf(key)}}:c:${claim}:${key}`);
  return [...kindByKind(names), ...tombstones];
}

function kindByKind(names: readonly LockNames[]): string[] {
  const count = names.length;
  const all = new Array<string>(count * 3);
  names.forEach(({ record, queue, tickets }, index) => {
    all[index] = record;
    all[count + index] = queue;
    all[count * 2 + index] = tickets;
  });
  return all;
}

const RECORD = /^guard:\{\d+\}:l:/;

/** A pattern that finds the records of all locks below a prefix, and other names beside them. */
export function recordPattern(prefix: string): string {
  return `guard:{*}:l:${escapeGlob(prefix)}*`;
}

/** The full key that a record's name stands for; `undefined`: it is not the name of a record. */
export function keyOf(record: string): string | undefined {
  const start = RECORD.exec(record);
  return start === null ? undefined : record.slice(start[0].length);
}

/** Before the session's id: the channel of a guard's notices. */
export const CHANNEL_PREFIX = 'guard:notices:';

/** Before the namespace: the channel on which writes are told, for one database and key prefix. */
export function stateChannel(scope: string): string {
  return `guard:state:${scope}:`;
}

/** The hash of a state entry. */
export function entryName(key: string): string {
  return `guard:{${tagOf(key)}}:s:${key}`;
}

/** The keys of state entries, in the order of their bytes: one index, or one for each tag where keys must share a slot. */
export interface StateIndex {
  of(key: string): string;
  readonly all: readonly string[];
}

/** One index for all entries. */
export const ONE_INDEX: StateIndex = { of: () => 'guard:index', all: ['guard:index'] };

/** An index beside the entries of each tag. */
export const INDEX_PER_TAG: StateIndex = {
  of: (key) => indexOf(tagOf(key)),
  all: TAGS.map(indexOf),
};

function indexOf(tag: string): string {
  return `guard:{${tag}}:index`;
}
