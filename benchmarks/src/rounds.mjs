// Rounds: every contender in turn, in rotated order, so that whatever else the machine does meets all of them alike. The
// first round warms up and is thrown away. A contender that fails is a result: it falls out, and the others go on.
import { percentile } from './rows.mjs';

/**
 * Samples of each contender, in the order of the rounds; `play(name, round)` answers one, with -1 while it warms up. Where
 * it rejects, the last sample of that contender says so.
 */
export async function playRounds({ names, rounds, play, warmUp = true }) {
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  const out = new Set();
  for (let round = warmUp ? -1 : 0; round < rounds; round += 1) {
    for (let turn = 0; turn < names.length; turn += 1) {
      const name = names[(turn + round + 1) % names.length];
      if (out.has(name)) continue;
      try {
        const sample = await play(name, round);
        if (round >= 0) samples[name].push(sample);
      } catch (error) {
        out.add(name);
        samples[name].push(failedSample(error));
      }
    }
  }
  return samples;
}

/** What stands for a contender that failed as a whole, which counts as a pair that failed. */
export function failedSample(error) {
  const [text] = String(error?.message ?? error).split('\n');
  return { failure: text.replace(/^(Error: )+/, ''), violations: 1 };
}

/** The median over the rounds of `ours` / `theirs` in the same round. */
export function ratioOf(ours, theirs) {
  const pairs = ours.slice(0, theirs.length).map((value, round) => value / theirs[round]);
  return percentile(pairs.filter(Number.isFinite), 0.5);
}
