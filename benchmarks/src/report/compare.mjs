// Two reports side by side: every number that is more than its own spread away from what it was. Reports of two machines,
// or of a machine that was busy, differ everywhere: ratios between contenders are compared as well, and move less. What
// was played in one report alone is counted, for what is gone would otherwise look as if nothing had moved.
import { METRICS } from '../rows.mjs';
import { rowsWhere, paramsText, short, timesOf } from './look.mjs';

/** What moves less than this is noise on any machine. */
const NOISE = 0.1;
/** Nobody knows the spread of a number of one round: it has to change by this factor to be worth a line. */
const LARGE = 2;
const SHOWN_VERSIONS = 6;

export function compare(old, now) {
  const { changes, same, gone, added } = comparisonOf(old, now);
  console.log(
    `\ncompared with the old report: ${changes.length} of ${same} numbers moved beyond their spread` +
      `${gone === 0 ? '' : `, ${gone} were in the old one alone`}${added === 0 ? '' : `, ${added} are new`}`,
  );
  for (const caution of cautionsOf(old, now)) console.log(`  ${caution}`);
  for (const { row, before, factor, verdict, ratio } of changes) {
    const what = [row.scenario, row.backend, row.contender, row.metric, paramsText(row.params)];
    const beside = ratio === undefined ? '' : `beside raw ${short(ratio.before)} -> ${short(ratio.now)} x`;
    const times = factor > 0 && Number.isFinite(factor) ? `${factor.toFixed(2)} x` : '';
    const once = Math.min(row.n, before.n) === 1 ? 'one round' : '';
    const more = [times, beside, once].filter(Boolean).join('; ');
    console.log(
      `  ${verdict.padEnd(6)} ${what.filter(Boolean).join(', ')}: ${short(before.value)} -> ${short(row.value)} ${row.unit}` +
        `${more === '' ? '' : ` (${more})`}`,
    );
  }
}

/** `{ changes, same, gone, added }`: rows whose ranges do not touch, the largest change first, and how many rows match. */
export function comparisonOf(old, now) {
  const found = new Map(old.rows.map((row) => [caseOf(row), row]));
  const pairs = now.rows.flatMap((row) => {
    const before = found.get(caseOf(row));
    return before === undefined ? [] : [{ row, before }];
  });
  const changes = pairs
    .flatMap(({ row, before }) => {
      if (row.min <= before.max && before.min <= row.max) return [];
      const factor = row.value / before.value;
      if (Math.abs(factor - 1) < NOISE) return [];
      if (Math.min(row.n, before.n) === 1 && sizeOf({ factor }) < Math.log(LARGE)) return [];
      const better = METRICS[row.metric].better;
      const more = row.value > before.value;
      const verdict = better === undefined ? '' : (better === 'more') === more ? 'better' : 'worse';
      return [{ row, before, factor, verdict, ratio: besideRaw(old, now, before, row) }];
    })
    .sort((a, b) => sizeOf(b) - sizeOf(a));
  const same = pairs.length;
  return { changes, same, gone: old.rows.length - same, added: now.rows.length - same };
}

/** Why numbers of these reports may differ though nothing became faster or slower. */
function cautionsOf(old, now) {
  const kind = ({ quick }) => (quick ? 'quick' : 'full');
  const names = [...new Set([...Object.keys(old.versions), ...Object.keys(now.versions)])];
  const moved = names
    .filter(
      (name) => old.versions[name] !== now.versions[name] && name in old.versions && name in now.versions,
    )
    .map((name) => `${name} ${old.versions[name]} -> ${now.versions[name]}`);
  const more = moved.length - SHOWN_VERSIONS;
  return [
    ...(JSON.stringify(old.machine) === JSON.stringify(now.machine)
      ? []
      : ['the machines differ: look at the ratios alone']),
    ...(kind(old) === kind(now)
      ? []
      : [`the old run was ${kind(old)} and this one ${kind(now)}: its samples have another length`]),
    ...(old.seed === now.seed
      ? []
      : [`the seeds differ, ${old.seed} and ${now.seed}: faults came at other moments`]),
    ...(moved.length === 0
      ? []
      : [`versions: ${moved.slice(0, SHOWN_VERSIONS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`]),
  ];
}

/** What makes two rows rows of the same thing, in whatever order its params were written. */
function caseOf({ scenario, backend, contender, metric, params }) {
  const sorted = Object.entries(params).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([scenario, backend, contender, metric, sorted]);
}

/** How large a change is, as many times; from nothing or to nothing is the largest. */
function sizeOf({ factor }) {
  const size = Math.abs(Math.log(factor));
  return Number.isFinite(size) ? size : Number.MAX_VALUE;
}

/** Nothing beside nothing, or something beside it, is no number of times. */
function besideRaw(old, now, before, row) {
  if (row.contender === 'raw') return undefined;
  const [rawBefore, rawNow] = [old, now].map(({ rows }) => rawOf(rows, row));
  if (rawBefore === undefined || rawNow === undefined) return undefined;
  if ([before, row, rawBefore, rawNow].some(({ value }) => value === 0)) return undefined;
  return { before: timesOf(before, rawBefore), now: timesOf(row, rawNow) };
}

function rawOf(rows, { scenario, backend, metric, params }) {
  const text = caseOf({ scenario, backend, metric, params, contender: 'raw' });
  return rowsWhere(rows, { scenario, backend, metric, contender: 'raw' }).find((row) => caseOf(row) === text);
}
