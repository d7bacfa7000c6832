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

/** A lock as the scripts are told of it: what stands behind `guard:` in the name of its record. */
export function recordField(key: string): string {
  return `{${tagOf(key)}}:l:${key}`;
}

/** What a script for many locks is given as its keys, and as its first argument. */
export interface LockScope {
  readonly keys: readonly string[];
  readonly behindGuard: number;
}

/** What the scripts on locks are told of the keys that they may touch. */
export interface LockScopes {
  many(locks: readonly { readonly key: string }[]): LockScope;
  /** The last token and the record, and whatever else has to be named. */
  lone(key: string): readonly string[];
}

const LAST_TOKEN = 'guard:token';

/** Of a server: the last token is one for all locks, and the scripts make all names themselves. */
export const SERVER_SCOPES: LockScopes = {
  many: () => SERVER,
  lone: (key) => [LAST_TOKEN, `guard:{${tagOf(key)}}:l:${key}`],
};

/** In a cluster the locks of one call are of one tag, and its client has to be told of every key. */
export const TAG_SCOPES: LockScopes = {
  many: scopeOfTag,
  lone: (key) => scopeOfTag([{ key }]).keys,
};

function scopeOfTag(locks: readonly { readonly key: string }[]): LockScope {
  const tag = `{${tagOf(locks[0]?.key ?? '')}}:`;
  const keys = [`guard:${tag}token`];
  for (const { key } of locks) {
    const { record, queue, tickets } = lockNames(key);
    keys.push(record, queue, tickets);
  }
  return { keys, behindGuard: tag.length + 'token'.length };
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

/** Before the session's id: the channel of a guard's notices, as the scripts write it. */
export const CHANNEL_PREFIX = 'guard:notices:';

const SERVER: LockScope = { keys: [LAST_TOKEN], behindGuard: 'token'.length };

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

/** Of the entries that an index lists, those that end, by their ends. */
export function endsName(index: string): string {
  return `${index}-ends`;
}

function indexOf(tag: string): string {
  return `guard:{${tag}}:index`;
}
