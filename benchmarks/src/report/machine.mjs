// Where a run was made, and with which versions. A stage adds those of its own: its server, and the Node that it runs on.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { peerVersions } from '../backends/peers.mjs';

const BENCHMARKS = join(import.meta.dirname, '..', '..');

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

/** Guard and the drivers that it and its peers share, and everything in the project of the peers. */
export function versions() {
  const { node: nodeOfPeers, ...peers } = peerVersions();
  const commit = commitOf();
  return {
    ...{ node: process.versions.node, nodeOfPeers, ...(commit === undefined ? {} : { commit }) },
    ...{ ...ownVersions(), ...peers },
  };
}

/** What is installed of what the benchmarks name. */
function ownVersions() {
  const { dependencies } = JSON.parse(readFileSync(join(BENCHMARKS, 'package.json'), 'utf8'));
  const versionOf = (name) => {
    const manifest = join(BENCHMARKS, '..', 'node_modules', name, 'package.json');
    return JSON.parse(readFileSync(manifest, 'utf8')).version;
  };
  return Object.fromEntries(Object.keys(dependencies).map((name) => [name, versionOf(name)]));
}

/** A plus says that files were changed since; nothing where this is no clone. */
function commitOf() {
  const git = (...args) => spawnSync('git', args, { cwd: BENCHMARKS, encoding: 'utf8' });
  const { status, stdout } = git('rev-parse', '--short', 'HEAD');
  if (status !== 0) return undefined;
  const changed = git('status', '--porcelain', '--untracked-files=no').stdout;
  return `${stdout.trim()}${changed === '' ? '' : '+'}`;
}
