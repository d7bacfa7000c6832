/** The public surface of `@guard/etcd`, written by hand: nothing is exported by accident. */
export { etcdLocks } from './locks.js';
export type { EtcdLocksOptions } from './locks.js';
export type { EtcdClient } from './connection.js';
export { etcdState } from './state.js';
export type { EtcdStateOptions } from './state.js';
