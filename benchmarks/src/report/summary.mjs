// One line for each backend and scenario: Guard, the bare backend and the best peer, and how many times better Guard is.
import { METRICS } from '../rows.mjs';
import { cases, paramsText, rowsWhere, short, timesOf } from './look.mjs';

/** The number that stands for a scenario. */
const HEADS = {
  uncontended: ['pair_p50_ms'],
  throughput: ['pairs_per_s'],
  contention: ['handovers_per_s', 'gap_p50_ms', 'wait_p99_ms', 'ops_per_handover'],
  expiry: ['takeover_ms', 'overlap_ms', 'lost_signal_late_ms'],
  hold: ['ops_per_s', 'server_cpu_pct', 'client_cpu_pct', 'bytes_per_lock'],
  run: ['run_p50_ms', 'runs_per_s', 'trips_per_run'],
  start: ['import_ms', 'packed_kb'],
};
/** Contenders that are no peers: Guard's own variants, the bare backend, and what the machine allows. */
const NO_PEER = (name) => name === 'raw' || name === 'floor' || name.startsWith('guard');

export function printSummary(report) {
  const lines = summaryOf(report);
  if (lines.length === 0) return;
  console.log('\nguard, raw and the best peer (x: how many times better guard is)');
  const columns = lines.map(({ what, guard, raw, best }) => [
    what,
    short(guard.value),
    raw === undefined ? '-' : `${short(raw.value)} (${times(raw)})`,
    best === undefined ? '-' : `${short(best.value)} (${times(best)}) ${best.contender}${wrongs(best)}`,
  ]);
  const widths = [0, 1, 2].map((n) => Math.max(...columns.map((line) => line[n].length)));
  for (const [what, guard, raw, best] of columns)
    console.log(
      `  ${what.padEnd(widths[0])}  ${guard.padStart(widths[1])}  ${raw.padStart(widths[2])}  ${best}`,
    );
}

/** Nothing beside something is no number of times. */
function times(row) {
  return Number.isFinite(row.times) ? `${row.times.toFixed(2)} x` : 'guard has none';
}

/** The best of something may have been so by doing something else wrong. */
function wrongs({ violations }) {
  return violations === 0 ? '' : `, with ${violations} violations`;
}

/** `{ what, guard, raw?, best? }` of each scenario and case. */
export function summaryOf({ rows }) {
  const lines = [];
  for (const [scenario, metrics] of Object.entries(HEADS)) {
    for (const metric of metrics) {
      for (const { params, rows: own } of cases(rowsWhere(rows, { scenario, metric }))) {
        for (const backend of new Set(own.map((row) => row.backend))) {
          const line = lineOf(
            own.filter((row) => row.backend === backend),
            metric,
            cases(rowsWhere(rows, { scenario, backend, metric: 'violations' })).find(
              (each) => each.text === paramsText(params),
            )?.rows,
          );
          if (line !== undefined)
            lines.push({
              what: [backend, scenario, paramsText(params), metric].filter(Boolean).join(', '),
              ...line,
            });
        }
      }
    }
  }
  return lines;
}

function lineOf(rows, metric, violations = []) {
  const guard = rows.find(({ contender }) => contender === 'guard');
  if (guard === undefined) return undefined;
  const less = METRICS[metric].better === 'less';
  const beside = (row) =>
    row && {
      ...row,
      times: less ? timesOf(row, guard) : timesOf(guard, row),
      violations: violations.find(({ contender }) => contender === row.contender)?.max ?? 0,
    };
  const peers = rows.filter(({ contender }) => !NO_PEER(contender));
  const [best] = peers.sort((a, b) => (less ? a.value - b.value : b.value - a.value));
  return { guard, raw: beside(rows.find(({ contender }) => contender === 'raw')), best: beside(best) };
}
