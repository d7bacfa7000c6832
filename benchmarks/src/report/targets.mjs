// What Guard is to reach, and whether it did. The limits come from prototypes that were measured beside the bare backend
// and the peers: they are ratios wherever that is possible, because absolute numbers move with the machine. A target of
// what was played and that cannot be judged is named: silence would look like success.
import { rowsWhere, timesOf } from './look.mjs';
import { TARGETS } from './target-list.mjs';

export function printTargets(report) {
  const verdicts = verdictsOf(report);
  if (verdicts.length === 0) return;
  console.log('\ntargets');
  for (const { text, value, sign, limit, met } of verdicts)
    console.log(`  ${met ? 'met   ' : 'MISSED'}  ${text}: ${shown(value)} ${sign} ${shown(limit)}`);
  for (const text of unjudged(report))
    console.log(`  not judged  ${text}: a number that it needs is missing`);
}

/** Two digits, with which a value is compared as well: what looks the same is the same. */
export function shown(value) {
  return Number.isFinite(value) ? String(rounded(value)) : 'without end';
}

function rounded(value) {
  return Math.round(value * 100) / 100;
}

/** `{ text, value, sign, limit, met }` of each target that this report can judge. */
export function verdictsOf({ rows }) {
  return TARGETS.flatMap((target) => {
    const value = valueOf(rows, target);
    // Without end is an answer: where somebody starves, no share is times as large.
    if (value === undefined || Number.isNaN(value)) return [];
    const { text, sign, limit } = target;
    const [is, atLimit] = [rounded(value), rounded(limit)];
    return [{ text, value, sign, limit, met: sign === '<=' ? is <= atLimit : is >= atLimit }];
  });
}

/** What Guard was played for and nobody can say whether it reached it. */
export function unjudged({ rows }) {
  return TARGETS.filter((target) => {
    const [ours] = rowsWhere(rows, { ...target.at, contender: target.of ?? 'guard', metric: target.metric });
    const value = ours && valueOf(rows, target);
    return ours !== undefined && (value === undefined || Number.isNaN(value));
  }).map(({ text }) => text);
}

function valueOf(rows, { at, metric, of, over, overMetric, overParams, invert, turn, scale }) {
  const [ours] = rowsWhere(rows, { ...at, contender: of ?? 'guard', metric });
  if (ours === undefined) return undefined;
  if (turn === true) return turnOf(rows, at, ours);
  if (over === undefined) return (invert ? 1 / ours.value : ours.value) * (scale?.(ours.params) ?? 1);
  const where = overParams === undefined ? at : { ...at, params: overParams };
  const theirs = otherOf(rows, { at: where, over, metric: overMetric ?? metric });
  if (theirs === undefined) return undefined;
  return invert ? timesOf(theirs, ours) : timesOf(ours, theirs);
}

/** `over`: a contender, `best` peer for a metric of which more is better, or `fastest` for one of which less is. */
function otherOf(rows, { at, over, metric }) {
  if (over !== 'best' && over !== 'fastest') return rowsWhere(rows, { ...at, contender: over, metric })[0];
  const peers = rowsWhere(rows, { ...at, metric }).filter(
    ({ contender }) => contender !== 'raw' && contender !== 'floor' && !contender.startsWith('guard'),
  );
  const order = over === 'best' ? (a, b) => b.value - a.value : (a, b) => a.value - b.value;
  return peers.sort(order)[0];
}

/** A full turn of all waiters: nobody could wait less where all come equally often. */
function turnOf(rows, at, ours) {
  const [gap] = rowsWhere(rows, { ...at, contender: 'guard', metric: 'gap_p50_ms', params: ours.params });
  return gap && ours.value / (ours.params.waiters * (ours.params.holdMs + gap.value));
}
