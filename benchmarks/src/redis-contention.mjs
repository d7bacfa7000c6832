// Sixteen waiters on one key, each with connections of its own: how fast the lock goes from hand to hand, how long the
// unluckiest waits, how even the shares are, and what the server is asked for it. Think time lets others have a turn.
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { percentile } from './measure.mjs';

const WAITERS = 16;
const HOLD_MS = 2;
const THINK_MS = 10;

const UNITS = {
  handovers_per_s: '1/s',
  gap_p50_ms: 'ms',
  wait_p99_ms: 'ms',
  share_min_max: 'ratio',
  ops_per_handover: 'count',
  pushes_per_handover: 'count',
  violations: 'count',
};

export async function contention(server, connect, { quick }) {
  const sets = [];
  for (let n = 0; n < WAITERS; n += 1) sets.push(await connect());
  const admin = new Redis(server.url);
  const { contenders } = sets[0];
  const names = Object.keys(contenders).filter((name) => contenders[name].waits);
  const rounds = quick ? 2 : 5;
  const seen = Object.fromEntries(names.map((name) => [name, []]));
  const floors = [];
  for (let round = -1; round < rounds; round += 1) {
    if (round >= 0) floors.push(await publishFloor(server));
    for (let turn = 0; turn < names.length; turn += 1) {
      const name = names[(turn + round + 1) % names.length];
      const sample = await play(admin, sets, name, quick || round < 0 ? 1_000 : 2_000);
      if (round >= 0) seen[name].push(sample);
    }
  }
  admin.disconnect();
  print(seen, percentile(floors, 0.5));
  return rowsOf(seen);
}

async function play(admin, sets, name, forMs) {
  const pairs = sets.map((set) => set.contenders[name].pair);
  const sentBefore = sentBy(sets);
  const publishedBefore = await published(admin);
  const grants = pairs.map(() => 0);
  const waits = [];
  const gaps = [];
  let exitedAt;
  let inside = 0;
  let violations = 0;
  let lastToken = -1n;
  const end = performance.now() + forMs;
  const loop = async (pair, worker) => {
    while (performance.now() < end) {
      const asked = performance.now();
      await pair('contended', async (token) => {
        const now = performance.now();
        if (exitedAt !== undefined) gaps.push(now - exitedAt);
        if (inside > 0 || (token !== undefined && token <= lastToken)) violations += 1;
        lastToken = token ?? lastToken;
        inside += 1;
        waits.push(now - asked);
        grants[worker] += 1;
        await pause(HOLD_MS);
        inside -= 1;
        exitedAt = performance.now();
      });
      await pause(THINK_MS);
    }
  };
  const from = performance.now();
  await Promise.all(pairs.map(loop));
  const seconds = (performance.now() - from) / 1_000;
  const total = grants.reduce((sum, count) => sum + count, 0);
  // What does not go down a connection of ioredis is not counted.
  const sent = sentBy(sets) - sentBefore;
  return {
    handovers_per_s: total / seconds,
    gap_p50_ms: percentile(gaps, 0.5),
    wait_p99_ms: percentile(waits, 0.99),
    share_min_max: Math.min(...grants) / Math.max(...grants),
    ops_per_handover: sent > 0 ? sent / total : undefined,
    pushes_per_handover: ((await published(admin)) - publishedBefore) / total,
    violations,
  };
}

function sentBy(sets) {
  return sets.reduce((sum, { sent }) => sum + sent(), 0);
}

/** Messages that scripts published, counted by the server. */
async function published(admin) {
  return Number(/cmdstat_publish:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0);
}

/** How long a message takes after two idle milliseconds: no hand-over by messages can be faster. */
async function publishFloor(server) {
  const [from, to] = [new Redis(server.url), new Redis(server.url)];
  await to.subscribe('floor');
  const times = [];
  for (let n = 0; n < 50; n += 1) {
    await pause(HOLD_MS);
    const sentAt = performance.now();
    const heard = new Promise((resolve) => to.once('message', resolve));
    await Promise.all([from.publish('floor', 'x'), heard]);
    times.push(performance.now() - sentAt);
  }
  from.disconnect();
  to.disconnect();
  return percentile(times, 0.5);
}

function median(samples, metric) {
  const values = samples.map((sample) => sample[metric]).filter((value) => value !== undefined);
  return values.length === 0 ? undefined : percentile(values, 0.5);
}

function print(seen, floor) {
  console.log(
    `\ncontention, redis, one process, ${WAITERS} waiters, hold ${HOLD_MS} ms, think ${THINK_MS} ms`,
  );
  for (const [name, samples] of Object.entries(seen)) {
    const shown = Object.keys(UNITS).map((metric) => {
      const value = median(samples, metric);
      return `${metric} ${value === undefined ? '-' : value.toFixed(2)}`;
    });
    console.log(`  ${name.padEnd(18)} ${shown.join('  ')}`);
  }
  const guard = (metric) => median(seen.guard, metric);
  const others = Object.entries(seen).filter(([name]) => name !== 'guard');
  const best = (metric, pick) => pick(...others.map(([, samples]) => median(samples, metric)));
  const turn = WAITERS * (HOLD_MS + guard('gap_p50_ms'));
  const targets = [
    ['commands per hand-over', guard('ops_per_handover'), '<=', 2.1],
    ['messages per hand-over', guard('pushes_per_handover'), '<=', 1.05],
    ['gap p50 over a bare message', guard('gap_p50_ms') / floor, '<=', 1.5],
    ['wait p99 over a full turn', guard('wait_p99_ms') / turn, '<=', 1.3],
    ['largest over smallest share', 1 / guard('share_min_max'), '<=', 1.25],
    [
      'hand-overs over the best peer',
      guard('handovers_per_s') / best('handovers_per_s', Math.max),
      '>=',
      1.5,
    ],
    ['wait p99 over the best peer', guard('wait_p99_ms') / best('wait_p99_ms', Math.min), '<=', 0.25],
  ];
  for (const [what, value, sign, limit] of targets) {
    const met = sign === '<=' ? value <= limit : value >= limit;
    console.log(`  target: ${what} ${sign} ${limit}: ${value.toFixed(2)}, ${met ? 'met' : 'missed'}`);
  }
}

function rowsOf(seen) {
  const params = { processes: 1, waiters: WAITERS, holdMs: HOLD_MS, thinkMs: THINK_MS };
  return Object.entries(seen).flatMap(([contender, samples]) =>
    Object.keys(UNITS).flatMap((metric) => {
      const values = samples.map((sample) => sample[metric]).filter((value) => value !== undefined);
      if (values.length === 0) return [];
      const [value, unit] = [percentile(values, 0.5), UNITS[metric]];
      const range = { n: values.length, min: Math.min(...values), max: Math.max(...values) };
      return [{ scenario: 'contention', backend: 'redis', contender, metric, unit, value, ...range, params }];
    }),
  );
}
