// SQLite, several processes on one file: how much they do together, how evenly they share, and how long one waits.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { percentile } from './measure.mjs';

const PROCESSES = 4;
const WORKERS = 16;
/** A process of Node and TypeORM is up within this time on a slow machine. */
const START_MS = 2_500;
const CONTENDERS = ['guard', 'one by one', 'raw'];
const LABEL = `${PROCESSES} processes x ${WORKERS} keys`;

/** Plays the rounds, prints the medians beside their targets; answers the rows. */
export async function sqliteProcesses({ quick }) {
  const rounds = quick ? 3 : 7;
  const seen = Object.fromEntries(CONTENDERS.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < CONTENDERS.length; turn += 1) {
      const name = CONTENDERS[(turn + round) % CONTENDERS.length];
      seen[name].push(await play(name, quick ? 1_500 : 3_000));
    }
  }
  print(seen);
  return Object.entries(seen).flatMap(([contender, samples]) => rowsOf(contender, samples));
}

async function play(contender, durationMs) {
  const folder = mkdtempSync(join(tmpdir(), 'guard-bench-'));
  try {
    const file = join(folder, 'app.sqlite');
    prepareRaw(`${file}-raw`);
    const worker = join(import.meta.dirname, 'sqlite-worker.mjs');
    const args = [worker, file, contender, WORKERS, Date.now() + START_MS, durationMs].map(String);
    const runs = Array.from({ length: PROCESSES }, () => promisify(execFile)(process.execPath, args));
    const results = (await Promise.all(runs)).map(({ stdout }) => JSON.parse(stdout));
    const pairs = results.map((result) => result.pairs);
    return {
      perSecond: (pairs.reduce((sum, count) => sum + count, 0) * 1_000) / durationMs,
      share: Math.max(...pairs) / Math.max(1, Math.min(...pairs)),
      worstMs: Math.max(...results.map((result) => result.worstMs)),
      lagMs: Math.max(...results.map((result) => result.lagMs)),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function prepareRaw(file) {
  const database = new Database(file);
  database.pragma('journal_mode = WAL');
  database.exec('CREATE TABLE locks (name TEXT PRIMARY KEY, owner TEXT, until INTEGER) WITHOUT ROWID');
  database.close();
}

const median = (samples, name) =>
  percentile(
    samples.map((sample) => sample[name]),
    0.5,
  );

function print(seen) {
  console.log(`\nthroughput, sqlite, ${LABEL}`);
  for (const [name, samples] of Object.entries(seen)) {
    const [perSecond, share, worstMs, lagMs] = ['perSecond', 'share', 'worstMs', 'lagMs'].map((metric) =>
      median(samples, metric),
    );
    console.log(
      `  ${name.padEnd(12)} ${perSecond.toFixed(0).padStart(9)} pairs/s  largest share ${share.toFixed(2)} x smallest` +
        `  worst pair ${worstMs.toFixed(0)} ms  loop lag ${lagMs.toFixed(0)} ms`,
    );
  }
  const batched = percentile(
    seen.guard.map(({ perSecond }, round) => perSecond / seen['one by one'][round].perSecond),
    0.5,
  );
  target('batched at least 2.50 x one by one', batched, batched >= 2.5);
  target(
    'largest share at most 1.40 x the smallest',
    median(seen.guard, 'share'),
    median(seen.guard, 'share') <= 1.4,
  );
  target('worst pair at most 100 ms', median(seen.guard, 'worstMs'), median(seen.guard, 'worstMs') <= 100);
  target('loop lag at most 50 ms', median(seen.guard, 'lagMs'), median(seen.guard, 'lagMs') <= 50);
}

function target(text, value, met) {
  console.log(`  target: ${text}: ${value.toFixed(2)}, ${met ? 'met' : 'missed'}`);
}

function rowsOf(contender, samples) {
  const row = (metric, unit, name) => {
    const values = samples.map((sample) => sample[name]);
    return {
      ...{
        scenario: 'throughput',
        backend: 'sqlite',
        contender,
        metric,
        unit,
        value: percentile(values, 0.5),
      },
      ...{ n: values.length, min: Math.min(...values), max: Math.max(...values) },
      params: { processes: PROCESSES, concurrency: WORKERS },
    };
  };
  return [
    row('pairs_per_s', '1/s', 'perSecond'),
    row('share_max_min', 'ratio', 'share'),
    row('pair_max_ms', 'ms', 'worstMs'),
    row('loop_lag_ms', 'ms', 'lagMs'),
  ];
}
