/**
 * The contract suites on one topology. On real servers nearly all time of a case is waiting, and cases share nothing
 * but the server, so several run at the same time.
 */
import { kvRuns, systemRandom, type LockTraits, type RunStore } from '@guard/core';
import { sideBySide, type LockBackendSuite, type RunStoreSuite, type StateStoreSuite } from '@guard/testing';
import { redisLocks, redisState, type RedisConnection } from '../../src/index.js';
import type { Client, Place, Via } from './clients.js';

const atOnce = { describe, it: it.concurrent, skip: it.skip };
/** More at a time make a small machine late for the leases of the cases. */
const terms = { atATime: 3, ...(process.env['CI'] !== undefined && { onSecondChance: told }) };
const runner = sideBySide(atOnce, terms);
/** The port's own sentences; the cases of a guard above them are left to the topologies that run all. */
const sentencesOnly = sideBySide(atOnce, { ...terms, suites: (title) => !title.startsWith('guard on ') });

/** As for every other test on the real time: `scripts/jest-real-time.cjs`. */
function told(title: string, error: unknown): void {
  console.warn(`${title}: played again after`, error);
}

const lockTraits: LockTraits = {
  fifo: true,
  push: true,
  floor: true,
  minTtlMs: 200,
  ttlGranularityMs: 1,
  maxBatch: 64,
  maxRenew: 256,
};

/** Where a suite runs, and through what. */
export interface Setting {
  readonly name: string;
  readonly via: Via;
  readonly place: () => Place;
}

/** `sentences`: without the cases of a guard. */
type Cases = 'all' | 'sentences';

/** Options of `describeLockBackend`. */
export function lockSuite(setting: Setting, cases: Cases = 'all'): LockBackendSuite {
  return {
    runner: cases === 'all' ? runner : sentencesOnly,
    name: `redisLocks, ${setting.name}`,
    traits: lockTraits,
    create: async () => {
      const { first: backend, ...rest } = await placeOf(setting, redisLocks);
      return { backend, ...rest };
    },
  };
}

/** Options of `describeStateStore`. */
export function stateSuite(
  setting: Setting,
  { cluster = false, cases = 'all' }: { readonly cluster?: boolean; readonly cases?: Cases } = {},
): StateStoreSuite {
  return {
    runner: cases === 'all' ? runner : sentencesOnly,
    name: `redisState, ${setting.name}`,
    traits: { maxBatch: 64, push: true, atomicBatch: !cluster },
    create: async () => {
      const { first: store, ...rest } = await placeOf(setting, redisState);
      return { store, ...rest };
    },
  };
}

/** Options of `describeRunStore`. */
export function runSuite(setting: Setting): RunStoreSuite {
  return {
    runner,
    name: `kvRuns on redisState, ${setting.name}`,
    traits: kvRuns(redisState(noConnection())).traits,
    create: async () => {
      const make = (connection: RedisConnection): RunStore => kvRuns(redisState(connection));
      const { first: store, ...rest } = await placeOf(setting, make);
      return { store, ...rest };
    },
  };
}

/** Clients that no case uses at the moment: making one takes longer than a lease lasts here, on some topologies. */
const idle = new Map<Via, Client[]>();

/** Ends all clients. */
export function endClients(): void {
  for (const clients of idle.values()) for (const client of clients) client.end();
  idle.clear();
}

/**
 * Below a prefix of its own: what one case leaves at the last token (its floors, and for a minute that it gave claims up)
 * would take all others off the fast path.
 */
function below(prefix: string, connection: RedisConnection): RedisConnection {
  return {
    ...connection,
    scope: connection.scope + prefix,
    run: (script, keys, args, acks) =>
      connection.run(
        script,
        keys.map((key) => prefix + key),
        args,
        acks,
      ),
    scan: async (pattern) =>
      (await connection.scan(prefix + pattern)).map((name) => name.slice(prefix.length)),
  };
}

/** A first connection, further ones on demand, and an end for all of them. */
async function placeOf<T extends { close(): Promise<void> }>(
  { via, place }: Setting,
  make: (connection: RedisConnection) => T,
): Promise<{ readonly first: T; connect(): Promise<T>; cleanup(): Promise<void> }> {
  const spare = idle.get(via) ?? [];
  idle.set(via, spare);
  const used: Client[] = [];
  const made: T[] = [];
  const prefix = `${systemRandom.id()}:`;
  const connect = async (): Promise<T> => {
    const client = spare.pop() ?? (await via(place()));
    used.push(client);
    const one = make(below(prefix, client.connection));
    made.push(one);
    return one;
  };
  const first = await connect();
  // The second is at hand before a case begins to count.
  if (spare.length === 0) spare.push(await via(place()));
  const cleanup = async (): Promise<void> => {
    await Promise.all(made.map((one) => one.close()));
    spare.push(...used);
  };
  return { first, connect, cleanup };
}

/** Traits are known before any server is. */
function noConnection(): RedisConnection {
  const never = (): Promise<never> => Promise.reject(new Error('not connected'));
  return { place: '', scope: '', cluster: false, run: never, scan: never, subscribe: never };
}
