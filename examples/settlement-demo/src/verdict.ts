/**
 * Was every occurrence settled once, and is every balance right? Judged from what was owed, the lines of the books,
 * the balances and the records of the runs; pure, so that its own tests can show it wrong books.
 */
import type { Balance, Posting } from './ledger.js';
import { money } from './timeline.js';

/** What the run store says about one occurrence. */
export interface RunSeen {
  readonly state: string;
  /** How often its history says that it was completed. */
  readonly completions: number;
  readonly takeovers: number;
}

/** Everything that is judged. */
export interface Evidence {
  /** Cents by merchant, for each occurrence. */
  readonly owed: readonly ReadonlyMap<number, number>[];
  readonly postings: readonly Posting[];
  readonly balances: readonly Balance[];
  /** The record of each occurrence; without a guard there are none. */
  readonly runs: readonly (RunSeen | undefined)[] | undefined;
  readonly refusedWrites: number;
  readonly nodes: number;
  readonly ms: number;
}

/** What `--json` prints. Money is in cents. */
export interface Figures {
  readonly occurrences: number;
  readonly completed: number;
  /** Occurrences that were settled, or a part of them, more than once. */
  readonly duplicates: number;
  readonly missed: number;
  readonly takeovers: number;
  /** Ledger writes and finishes of stale nodes that were refused. */
  readonly refusedWrites: number;
  readonly nodes: number;
  readonly balanceExpected: number;
  readonly balanceActual: number;
  readonly ms: number;
}

/** The verdict: it is good when there are no problems. */
export interface Verdict {
  readonly figures: Figures;
  readonly problems: readonly string[];
}

/** Faults of the scene: one worker killed and one stopped, whose write and finish are refused. */
const EXPECTED = { takeovers: 2, refusedWrites: 2 };

/** Judges. `nameOf` is how a person calls an occurrence. */
export function judge(evidence: Evidence, nameOf: (occurrence: number) => string): Verdict {
  const { owed, runs, refusedWrites, nodes, ms } = evidence;
  const books = owed.map((_, index) => booksOf(evidence, index));
  const completed = books.filter(({ isComplete }) => isComplete).length;
  const duplicates = books.filter(({ doubled }) => doubled !== undefined).length;
  const takeovers = sum((runs ?? []).map((run) => run?.takeovers ?? 0));
  const balanceExpected = sum(owed.flatMap((cents) => [...cents.values()]));
  const balanceActual = sum(evidence.balances.map(({ cents }) => cents));
  const figures = { occurrences: owed.length, completed, duplicates, missed: owed.length - completed };
  const problems = [
    ...books.flatMap((book, index) => book.problems.map((problem) => `${nameOf(index)} ${problem}`)),
    ...balanceProblems(evidence),
  ];
  if (runs !== undefined) {
    if (takeovers < EXPECTED.takeovers) problems.push(`only ${takeovers} runs were taken over`);
    if (refusedWrites < EXPECTED.refusedWrites) problems.push(`only ${refusedWrites} writes were refused`);
  }
  return {
    figures: { ...figures, takeovers, refusedWrites, nodes, balanceExpected, balanceActual, ms },
    problems,
  };
}

interface Book {
  readonly isComplete: boolean;
  readonly doubled: string | undefined;
  readonly problems: readonly string[];
}

function booksOf({ owed, postings, runs }: Evidence, occurrence: number): Book {
  const due = owed[occurrence] ?? new Map<number, number>();
  const lines = postings.filter((line) => line.occurrence === occurrence);
  const first = new Map<number, Posting>();
  const extra: Posting[] = [];
  for (const line of lines) {
    if (first.has(line.merchant)) extra.push(line);
    else first.set(line.merchant, line);
  }
  const run = runs?.[occurrence];
  const unpaid = [...due.keys()].filter((merchant) => !first.has(merchant)).length;
  const wrong = [...first.values()].filter(({ merchant, cents }) => due.get(merchant) !== cents).length;
  const doubled = doubling(lines, extra, run);
  const isRecorded = runs === undefined || run?.state === 'completed';
  const problems = [
    ...(doubled === undefined ? [] : [doubled]),
    ...(unpaid === 0 ? [] : [`is missing: ${unpaid} merchants were not paid`]),
    ...(wrong === 0 ? [] : [`paid a wrong amount to ${wrong} merchants`]),
    ...(isRecorded ? [] : [`has no completed run (${run?.state ?? 'no record'})`]),
  ];
  return { isComplete: unpaid === 0 && isRecorded, doubled, problems };
}

function doubling(
  lines: readonly Posting[],
  extra: readonly Posting[],
  run: RunSeen | undefined,
): string | undefined {
  if (extra.length > 0) {
    const by = [...new Set(lines.map(({ node }) => node))].sort().join(', ');
    const tooMuch = money(sum(extra.map(({ cents }) => cents)));
    const merchants = new Set(extra.map(({ merchant }) => merchant)).size;
    return `was doubled by ${by}: ${merchants} merchants were paid again, ${tooMuch} too much`;
  }
  if (run !== undefined && run.completions > 1) return `was completed ${run.completions} times`;
  return undefined;
}

/** Every balance by itself: two errors that cancel each other out are two errors. */
function balanceProblems({ owed, balances, postings }: Evidence): readonly string[] {
  const expected = new Map<number, number>();
  for (const sums of owed) {
    for (const [merchant, cents] of sums) expected.set(merchant, (expected.get(merchant) ?? 0) + cents);
  }
  const wrong = balances.filter(({ merchant, cents }) => cents !== (expected.get(merchant) ?? 0));
  const booked = sum(postings.map(({ cents }) => cents));
  const total = sum(balances.map(({ cents }) => cents));
  return [
    ...(wrong.length === 0 ? [] : [`${wrong.length} of ${balances.length} balances are wrong`]),
    ...(booked === total ? [] : [`the lines add up to ${money(booked)}, the balances to ${money(total)}`]),
  ];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
