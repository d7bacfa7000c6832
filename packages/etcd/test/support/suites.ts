/** The contract suites over etcd, for the runner of one half of them. */
import { kvRuns } from '@guard/core';
import type { LockBackendSuite, RunStoreSuite, StateStoreSuite } from '@guard/testing';
import { Etcd3 } from 'etcd3';
import { etcdLocks, etcdState } from '../../src/index.js';
import { placeOf } from './place.js';

export const locks: Omit<LockBackendSuite, 'runner'> = {
  name: 'etcdLocks',
  traits: {
    ...{ fifo: true, push: true, floor: false, minTtlMs: 2_000, ttlGranularityMs: 1_500 },
    ...{ maxBatch: 32, maxRenew: 5_000, tellsLosses: true },
  },
  create: async () => {
    const place = await placeOf((client) => etcdLocks(client));
    return { backend: place.first, connect: place.connect, cleanup: place.cleanup };
  },
};

export const state: Omit<StateStoreSuite, 'runner'> = {
  name: 'etcdState',
  traits: { maxBatch: 32, push: true, atomicBatch: true, ttlGranularityMs: 2_500 },
  create: async () => {
    const place = await placeOf((client) => etcdState(client));
    return { store: place.first, connect: place.connect, cleanup: place.cleanup };
  },
};

export const runs: Omit<RunStoreSuite, 'runner'> = {
  name: 'kvRuns on etcdState',
  // Nothing is connected: traits are known before any server is.
  traits: kvRuns(etcdState(new Etcd3())).traits,
  create: async () => {
    const place = await placeOf((client) => kvRuns(etcdState(client)));
    return { store: place.first, connect: place.connect, cleanup: place.cleanup };
  },
};
