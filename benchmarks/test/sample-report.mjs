// A small report with something in every chart, made by the suite's own writer of rows, for the test that looks at the
// HTML in a browser. Its numbers are invented.
import { rowsOf } from '../src/rows.mjs';

const CONTENDERS = ['guard', 'raw', 'some-peer'];
const CROWD = { processes: 4, waiters: 4, holdMs: 2, thinkMs: 10 };

export function sampleReport() {
  return {
    machine: { cpu: 'a <processor> & more', cores: 2, memoryMb: 4_000, platform: 'linux', release: '6' },
    versions: { node: '20.19.0', 'some-peer': '1.2.3' },
    seed: 1,
    quick: true,
    notes: ['redis: some-peer <died>'],
    rows: [...CONTENDERS.flatMap(rowsOfContender), ...floor()],
    series: CONTENDERS.flatMap(seriesOfContender),
  };
}

function rowsOfContender(contender, n) {
  const rows = (scenario, samples, params) =>
    rowsOf({ scenario, backend: 'redis', contender, samples, params });
  const times = (value) => [0.9, 1, 1.2].map((factor) => value * factor * (n + 1));
  const samples = (metric, value) => times(value).map((each) => ({ [metric]: each }));
  return [
    ...rows('uncontended', samples('pair_p50_ms', 0.2), { concurrency: 1 }),
    ...[1, 8, 64, 256].flatMap((concurrency) =>
      rows('throughput', samples('pairs_per_s', 10_000 * concurrency ** 0.3), { concurrency }),
    ),
    ...rows('contention', samples('gap_p50_ms', 0.4), CROWD),
    ...rows('expiry', [{ overlap_ms: n * 40, violations: n > 0 ? 1 : 0 }], {
      fault: 'sigstop',
      ttlMs: 1_000,
    }),
    ...['ops_per_s', 'server_cpu_pct', 'client_cpu_pct', 'bytes_per_lock'].flatMap((metric) =>
      rows('hold', samples(metric, 4), { locks: 100, ttlMs: 3_000 }),
    ),
    ...['run_p50_ms', 'trips_per_run'].flatMap((metric) =>
      rows('run', samples(metric, 3), { concurrency: 1 }),
    ),
    ...rows('start', samples('import_ms', 40), {}),
  ];
}

function floor() {
  const samples = [{ floor_ms: 0.3 }];
  return rowsOf({ scenario: 'contention', backend: 'redis', contender: 'floor', samples, params: CROWD });
}

function seriesOfContender(contender, n) {
  const own = { backend: 'redis', contender };
  const expiry = { fault: 'sigstop', ttlMs: 1_000 };
  return [
    { chart: 'latency', ...own, quantiles: [0.1, 0.2, 0.3, 2].map((ms) => ms * (n + 1)) },
    {
      ...{ chart: 'handover', ...own, params: CROWD, grants: [5, 4, 4, 3 - n] },
      line: [0, 1, 2, 3].map((waiter) => [waiter, waiter * 4, waiter * 4 + 2 + n]),
    },
    {
      ...{ chart: 'expiry', ...own, params: expiry, what: 'the holder is stopped past its ttl' },
      ...{ holder: [[-200, 0], ...(n === 0 ? [] : [[1_100, 1_100 + n * 40]])], next: [[1_010, 1_600]] },
      ...{ back: 1_100, lost: 1_102 + n * 40, until: 1_600 },
    },
    { chart: 'compares', ...own, text: 'what it does <here>' },
  ];
}
