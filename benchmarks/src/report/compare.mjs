// Two reports side by side: every number that is more than its own spread away from what it was. Reports of two machines,
// or of a machine that was busy, differ everywhere: ratios between contenders are compared as well, and move less.
import { METRICS } from '../rows.mjs';
import { paramsText, rowsWhere, short, timesOf } from './look.mjs';

/** What moves less than this is noise on any machine. */
const NOISE = 0.1;

export function compare(old, now) {
  const changes = changesOf(old, now);
  console.log(`\ncompared with the old report: ${changes.length} numbers moved beyond their spread`);
  if (JSON.stringify(old.machine) !== JSON.stringify(now.machine))
    console.log('  the machines differ: look at the ratios alone');
  for (const { row, before, factor, verdict, ratio } of changes) {
    const what = [row.scenario, row.backend, row.contender, row.metric, paramsText(row.params)];
    const beside = ratio === undefined ? '' : `; beside raw ${short(ratio.before)} -> ${short(ratio.now)} x`;
    console.log(
      `  ${verdict.padEnd(6)} ${what.filter(Boolean).join(', ')}: ${short(before.value)} -> ${short(row.value)} ${row.unit}` +
        ` (${factor.toFixed(2)} x${beside})`,
    );
  }
}

/** Rows of both reports whose ranges do not touch, the largest change first. */
export function changesOf(old, now) {
  return now.rows
    .flatMap((row) => {
      const { scenario, backend, contender, metric, params } = row;
      const before = sameCase(rowsWhere(old.rows, { scenario, backend, contender, metric }), params);
      if (before === undefined || (row.min <= before.max && before.min <= row.max)) return [];
      const factor = row.value / before.value;
      if (Math.abs(factor - 1) < NOISE) return [];
      const better = METRICS[metric].better;
      const verdict = better === undefined ? '' : (better === 'more') === factor > 1 ? 'better' : 'worse';
      return [{ row, before, factor, verdict, ratio: besideRaw(old, now, before, row) }];
    })
    .sort((a, b) => Math.abs(Math.log(b.factor || 1e-9)) - Math.abs(Math.log(a.factor || 1e-9)));
}

function besideRaw(old, now, before, row) {
  if (row.contender === 'raw') return undefined;
  const { scenario, backend, metric, params } = row;
  const query = { scenario, backend, metric, contender: 'raw' };
  const [rawBefore, rawNow] = [old, now].map(({ rows }) => sameCase(rowsWhere(rows, query), params));
  if (rawBefore === undefined || rawNow === undefined) return undefined;
  return { before: timesOf(before, rawBefore), now: timesOf(row, rawNow) };
}

function sameCase(rows, params) {
  return rows.find((row) => paramsText(row.params) === paramsText(params));
}
