// What a run prints and writes: medians of the rounds, ratios per round, and the targets beside them.
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { percentile } from './measure.mjs';

/** `[contender, factor]`: Guard must reach this multiple of the contender's speed. */
const TARGETS = {
  'memory one after the other': [
    ['async-mutex', 1],
    ['verrou', 4],
  ],
  'memory 64 keys at once': [['async-mutex', 1]],
  'memory 16 waiters on one key': [['verrou', 10]],
  'sqlite one after the other': [['raw', 1 / 1.2]],
  'redis one after the other': [['raw', 1 / 1.3]],
  'redis 64 keys at once': [
    ['raw', 1.8],
    ['verrou', 2],
    ['redis-semaphore', 2],
    ['redlock', 2],
  ],
  'etcd one after the other': [['raw', 1 / 1.15]],
  'etcd 64 keys at once': [
    ['raw', 5],
    ['etcd3', 11],
  ],
};

export function rowsOf(scenario, backend, results) {
  return results.flatMap(({ workers, waiters, seen }) =>
    Object.entries(seen).flatMap(([contender, { pairMs, p50, p99, violations }]) => {
      const params = { concurrency: workers, waiters };
      const row = (metric, unit, values) => ({
        ...{ scenario, backend, contender, metric, unit, value: percentile(values, 0.5), n: values.length },
        ...{ min: Math.min(...values), max: Math.max(...values), params },
      });
      const perSecond = row(
        'pairs_per_s',
        '1/s',
        pairMs.map((ms) => 1_000 / ms),
      );
      const times = [row('pair_p50_ms', 'ms', p50), row('pair_p99_ms', 'ms', p99)];
      return [
        ...(scenario === 'uncontended' ? times : [perSecond]),
        row('violations', 'count', [violations]),
      ];
    }),
  );
}

export function print(scenario, backend, results) {
  for (const { label, seen } of results) {
    console.log(`\n${scenario}, ${backend}, ${label}`);
    for (const [name, { pairMs, p50, p99, violations }] of Object.entries(seen)) {
      const [speed, ratio] = [1_000 / percentile(pairMs, 0.5), ratioOf(pairMs, seen.guard.pairMs)];
      const times = `p50 ${percentile(p50, 0.5).toFixed(4)} ms  p99 ${percentile(p99, 0.5).toFixed(4)} ms`;
      const wrong = violations > 0 ? `  ${violations} VIOLATIONS` : '';
      console.log(
        `  ${name.padEnd(18)} ${speed.toFixed(0).padStart(9)} pairs/s  ${times}  guard ${ratio.toFixed(2)} x${wrong}`,
      );
    }
    for (const [peer, factor] of TARGETS[`${backend} ${label}`] ?? []) {
      const ratio = ratioOf(seen[peer].pairMs, seen.guard.pairMs);
      const verdict = ratio >= factor ? 'met' : 'missed';
      console.log(
        `  target: guard at least ${factor.toFixed(2)} x ${peer}: ${ratio.toFixed(2)} x, ${verdict}`,
      );
    }
  }
}

/** Median over the rounds of how many times faster Guard was in that round. */
function ratioOf(theirs, ours) {
  return percentile(
    theirs.map((ms, round) => ms / ours[round]),
    0.5,
  );
}

export function machine() {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model ?? 'unknown',
    cores: cpus().length,
    memoryMb: Math.round(totalmem() / 1e6),
    platform: process.platform,
  };
}

export function versions() {
  const peers = JSON.parse(
    readFileSync(join(import.meta.dirname, '..', 'peers', 'package.json'), 'utf8'),
  ).dependencies;
  return { node: process.versions.node, ...peers };
}
