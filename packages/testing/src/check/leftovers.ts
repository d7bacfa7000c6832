/**
 * What a scenario left behind: after the last release and the last close there must be no lock, no ticket, no entry,
 * no stream and no timer of its own.
 */
import { invalidArgument, type LockBackend, type StateStore } from '@guard/core';
import { requireMethods, requireOptions, requireText } from '../argument.js';
import type { VirtualClock } from '../clock/virtual-clock.js';

/** Where to look. */
export interface LeftoverQuery {
  readonly locks?: LockBackend;
  /** Full keys of locks that the scenario used: one at least. */
  readonly keys?: readonly string[];
  readonly state?: StateStore;
  /** Prefix of full keys below which no entry may be left. */
  readonly prefix?: string;
  /** Where the scenario ran on a virtual clock: no timer may keep the process alive any more (L5). */
  readonly clock?: VirtualClock;
}

/**
 * Everything that is left, in sentences; empty where nothing is.
 *
 * @throws GuardError `invalid-argument`: the query names nothing to look at, or a part of it would not be looked at.
 */
export async function findLeftovers(query: LeftoverQuery): Promise<string[]> {
  checkQuery(query);
  return [...(await leftLocks(query)), ...(await leftEntries(query)), ...leftTimers(query)];
}

/** Whoever looks at nothing finds nothing: that must not pass for an answer. */
function checkQuery(query: LeftoverQuery): void {
  requireOptions('query', query, ['locks', 'keys', 'state', 'prefix', 'clock']);
  const { locks, keys, state, prefix, clock } = query;
  if (locks !== undefined) requireMethods('query.locks', locks, 'a LockBackend', ['inspect']);
  if (state !== undefined) requireMethods('query.state', state, 'a StateStore', ['scan']);
  if (clock !== undefined && (clock as Partial<VirtualClock>).pendingTimers === undefined) {
    throw invalidArgument('query.clock', clock, 'must be a VirtualClock');
  }
  if ((keys === undefined) !== (locks === undefined)) {
    throw invalidArgument('query.keys', keys, 'must be given with query.locks, and only with it');
  }
  if (keys !== undefined) checkKeys(keys);
  if (prefix !== undefined && state === undefined) {
    throw invalidArgument('query.prefix', prefix, 'must be given with query.state only');
  }
  if (prefix !== undefined) requireText('query.prefix', prefix);
  if (locks === undefined && state === undefined && clock === undefined) {
    throw invalidArgument('query', query, 'must name locks, state or a clock');
  }
}

function checkKeys(keys: unknown): void {
  if (!Array.isArray(keys)) throw invalidArgument('query.keys', keys, 'must be an array');
  if (keys.length === 0) throw invalidArgument('query.keys', keys, 'must name at least one lock');
  for (const [index, key] of keys.entries()) requireText(`query.keys[${index}]`, key);
}

async function leftLocks({ locks, keys = [] }: LeftoverQuery): Promise<string[]> {
  if (locks === undefined) return [];
  const infos = await locks.inspect({ keys });
  return infos
    .filter(({ held, waiting }) => held || waiting > 0)
    .map(({ key, held, waiting }) => `lock ${key}: ${held ? 'held' : 'free'}, ${waiting} waiting`);
}

async function leftEntries({ state, prefix = '' }: LeftoverQuery): Promise<string[]> {
  if (state === undefined) return [];
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await state.scan(prefix, cursor, 1_000);
    found.push(...page.entries.map(({ key }) => `entry ${key}`));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

function leftTimers({ clock }: LeftoverQuery): string[] {
  const ref = clock?.pendingTimers.ref ?? 0;
  return ref === 0 ? [] : [`${ref} timers that keep the process alive`];
}
