// What the holds of all processes say, in the order of their grants. A gap is time in which nobody held the lock though
// somebody waited for it, whoever got it in the end: a library whose waiters sleep while another one walks in has gaps too.
import { percentile } from './rows.mjs';

/**
 * `holds`: `[waiter, asked, entered, left, token]`; `waiting`: `[waiter, asked]` of each that still waits at the end, which
 * counts with what it has waited until then; `failures`: what went wrong with pairs that should not have failed.
 */
export function judge(holds, waiting, failures, { waiters, startAt, endAt }) {
  const grants = Array.from({ length: waiters }, () => 0);
  const gaps = [];
  const asking = earliestAsked(holds, waiting);
  let violations = failures.length;
  let previous;
  for (const [index, [waiter, , entered, left, token]] of holds.entries()) {
    if (entered >= startAt && entered < endAt) grants[waiter] += 1;
    if (previous !== undefined) {
      if (entered < previous.left || (token !== undefined && token <= previous.token)) violations += 1;
      // Where nobody was there to take it over it is no hand-over.
      if (asking[index] < previous.left && entered >= startAt)
        gaps.push(Math.max(0, entered - previous.left));
    }
    previous = { left: Math.max(left, previous?.left ?? 0), token };
  }
  const waits = [
    ...holds.filter(([, , entered]) => entered >= startAt).map(([, asked, entered]) => entered - asked),
    ...waiting.map(([, asked]) => Math.max(0, endAt - asked)),
  ];
  const total = grants.reduce((sum, count) => sum + count, 0);
  return {
    handovers_per_s: (total * 1_000) / (endAt - startAt),
    ...(gaps.length > 0 ? { gap_p50_ms: percentile(gaps, 0.5), gap_p99_ms: percentile(gaps, 0.99) } : {}),
    ...(waits.length > 0 ? { wait_p99_ms: percentile(waits, 0.99) } : {}),
    share_min_max: Math.min(...grants) / Math.max(1, ...grants),
    violations,
    ...(failures.length > 0 ? { failure: failures[0] } : {}),
  };
}

/** For each hold: when the first of those asked who have the lock then or later. */
function earliestAsked(holds, waiting) {
  let first = Math.min(Infinity, ...waiting.map(([, asked]) => asked));
  const found = [];
  for (let index = holds.length - 1; index >= 0; index -= 1) {
    first = Math.min(first, holds[index][1]);
    found[index] = first;
  }
  return found;
}
