// The same contenders on three nodes of etcd, where a write is done when two of them have it.
import { contenders, etcd } from './etcd.mjs';

const cluster = {
  ...etcd,
  name: 'etcd-cluster',
  /** A write waits for two disks. */
  handoverFactor: 4,
  scenarios: ['uncontended', 'throughput', 'contention'],
  startServer: () => etcd.startServer({ nodes: 3 }),
};

export { cluster as 'etcd-cluster', contenders };
