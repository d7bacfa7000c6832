/**
 * What a scenario left behind: after the last release and the last close there must be no lock, no ticket, no entry,
 * no stream and no timer of its own.
 */
import type { LockBackend, StateStore } from '@guard/core';
import type { VirtualClock } from '../clock/virtual-clock.js';

/** Where to look. */
export interface LeftoverQuery {
  readonly locks?: LockBackend;
  /** Full keys of locks that the scenario used. */
  readonly keys?: readonly string[];
  readonly state?: StateStore;
  /** Prefix of full keys below which no entry may be left. */
  readonly prefix?: string;
  /** Where the scenario ran on a virtual clock: no timer may keep the process alive any more (L5). */
  readonly clock?: VirtualClock;
}

/** Everything that is left, in sentences; empty where nothing is. */
export async function findLeftovers(query: LeftoverQuery): Promise<string[]> {
  return [...(await leftLocks(query)), ...(await leftEntries(query)), ...leftTimers(query)];
}

async function leftLocks({ locks, keys = [] }: LeftoverQuery): Promise<string[]> {
  if (locks === undefined || keys.length === 0) return [];
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
