// Where a run was made, and with which versions.
import { cpus, release, totalmem } from 'node:os';
import { peerVersions } from '../backends/peers.mjs';

export function machine() {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model ?? 'unknown',
    cores: cpus().length,
    memoryMb: Math.round(totalmem() / 1e6),
    platform: process.platform,
    release: release(),
  };
}

/** The Node of this process, and everything in the project of the peers, which names the Node that some of them need. */
export function versions() {
  const { node: nodeOfPeers, ...peers } = peerVersions();
  return { node: process.versions.node, nodeOfPeers, ...peers };
}
