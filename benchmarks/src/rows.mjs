// The one shape of a result. Everything the suite prints, draws or compares is made of these rows, so a metric has one
// name and one unit, and a number that is missing or not finite is refused here and not drawn as zero.

/** `unit`, and which way is better; `undefined` where neither is. */
export const METRICS = {
  pair_p50_ms: { unit: 'ms', better: 'less' },
  pair_p99_ms: { unit: 'ms', better: 'less' },
  pairs_per_s: { unit: '1/s', better: 'more' },
  handovers_per_s: { unit: '1/s', better: 'more' },
  gap_p50_ms: { unit: 'ms', better: 'less' },
  gap_p99_ms: { unit: 'ms', better: 'less' },
  wait_p99_ms: { unit: 'ms', better: 'less' },
  share_min_max: { unit: 'ratio', better: 'more' },
  ops_per_handover: { unit: 'count', better: 'less' },
  pushes_per_handover: { unit: 'count', better: 'less' },
  floor_ms: { unit: 'ms' },
  takeover_ms: { unit: 'ms', better: 'less' },
  overlap_ms: { unit: 'ms', better: 'less' },
  refused_writes: { unit: 'count', better: 'more' },
  lost_signal_late_ms: { unit: 'ms', better: 'less' },
  violations: { unit: 'count', better: 'less' },
  ops_per_s: { unit: '1/s', better: 'less' },
  client_cpu_pct: { unit: '%', better: 'less' },
  server_cpu_pct: { unit: '%', better: 'less' },
  server_us_per_pair: { unit: 'us', better: 'less' },
  bytes_per_lock: { unit: 'B', better: 'less' },
  locks_lost: { unit: 'count', better: 'less' },
  run_p50_ms: { unit: 'ms', better: 'less' },
  runs_per_s: { unit: '1/s', better: 'more' },
  trips_per_run: { unit: 'count', better: 'less' },
  import_ms: { unit: 'ms', better: 'less' },
  packed_kb: { unit: 'kB', better: 'less' },
  pair_max_ms: { unit: 'ms', better: 'less' },
  loop_lag_ms: { unit: 'ms', better: 'less' },
};

/** One row: the median of the rounds, and their spread. */
export function row({ scenario, backend, contender, metric, values, params = {} }) {
  const known = METRICS[metric];
  if (known === undefined) throw new Error(`the schema has no metric '${metric}'`);
  if (values.length === 0 || !values.every(Number.isFinite))
    throw new Error(`${scenario} ${backend} ${contender}: ${metric} is ${JSON.stringify(values)}`);
  const spread = { n: values.length, min: Math.min(...values), max: Math.max(...values) };
  return {
    ...{ scenario, backend, contender, metric, unit: known.unit, value: percentile(values, 0.5) },
    ...spread,
    rounds: values,
    params,
  };
}

/** Rows of samples that are objects of metrics; a metric that no sample has makes no row. */
export function rowsOf({ scenario, backend, contender, samples, params }) {
  return Object.keys(METRICS).flatMap((metric) => {
    const values = samples.map((sample) => sample[metric]).filter((value) => value !== undefined);
    return values.length === 0 ? [] : [row({ scenario, backend, contender, metric, values, params })];
  });
}

/** What is wrong with a report as a whole, in sentences. */
export function faultsIn({ machine, versions, seed, rows }) {
  const faults = [];
  if (typeof machine !== 'object' || typeof versions !== 'object' || !Number.isInteger(seed))
    faults.push('machine, versions or seed is missing');
  for (const one of rows ?? [{}]) {
    const each = one ?? {};
    const texts = ['scenario', 'backend', 'contender', 'metric', 'unit'].every(
      (field) => typeof each[field] === 'string' && each[field] !== '',
    );
    const numbers = ['value', 'n', 'min', 'max'].every((field) => Number.isFinite(each[field]));
    const ordered = each.min <= each.value && each.value <= each.max && each.n >= 1;
    const hasParams = typeof each.params === 'object' && each.params !== null;
    if (!texts || !numbers || !ordered || !hasParams || !Object.hasOwn(METRICS, each.metric))
      faults.push(`not a row: ${JSON.stringify(one)}`);
  }
  return faults;
}

/** The value below which this share of the values lies; `undefined` of none. */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
