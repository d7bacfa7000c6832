import type { Posting } from '../src/ledger.js';
import { type Evidence, judge, type RunSeen } from '../src/verdict.js';

/** Two occurrences for two merchants. */
const owed = [
  new Map([
    [1, 100],
    [2, 250],
  ]),
  new Map([[1, 5]]),
];
const lines: readonly Posting[] = [
  { occurrence: 0, merchant: 1, cents: 100, node: 'a' },
  { occurrence: 0, merchant: 2, cents: 250, node: 'b' },
  { occurrence: 1, merchant: 1, cents: 5, node: 'b' },
];
const run: RunSeen = { state: 'completed', completions: 1, takeovers: 1 };

describe('the verdict', () => {
  it('is good when every occurrence was settled once and every balance is right', () => {
    const { figures, problems } = judged({});
    expect(problems).toEqual([]);
    expect(figures).toEqual({
      ...{ occurrences: 2, completed: 2, duplicates: 0, missed: 0, takeovers: 2, refusedWrites: 2 },
      ...{ nodes: 3, balanceExpected: 355, balanceActual: 355, ms: 1 },
    });
  });

  it('names an occurrence that was paid twice, with those who did it', () => {
    const again = { occurrence: 0, merchant: 2, cents: 250, node: 'c' };
    const { figures, problems } = judged({ postings: [...lines, again] });
    expect(figures).toMatchObject({ completed: 2, duplicates: 1, balanceActual: 605 });
    expect(problems).toEqual([
      'no. 0 was doubled by a, b, c: 1 merchants were paid again, 2.50 too much',
      '1 of 2 balances are wrong',
    ]);
  });

  it('names an occurrence that was completed twice, although it was paid once', () => {
    const { figures, problems } = judged({ runs: [run, { ...run, completions: 2 }] });
    expect(figures.duplicates).toBe(1);
    expect(problems).toEqual(['no. 1 was completed 2 times']);
  });

  it('names an occurrence that is missing, in part or in whole', () => {
    const { figures, problems } = judged({ postings: lines.slice(0, 1) });
    expect(figures).toMatchObject({ completed: 0, missed: 2 });
    expect(problems).toContain('no. 0 is missing: 1 merchants were not paid');
    expect(problems).toContain('no. 1 is missing: 1 merchants were not paid');
  });

  it.each([
    [undefined, 'no record'],
    [{ ...run, state: 'running' }, 'running'],
  ])('does not count an occurrence without a completed run: %j', (seen, why) => {
    const { figures, problems } = judged({ runs: [{ ...run, takeovers: 2 }, seen] });
    expect(figures).toMatchObject({ completed: 1, missed: 1 });
    expect(problems).toContain(`no. 1 has no completed run (${why})`);
  });

  it('sees a wrong amount, also where two of them cancel each other out', () => {
    const [first, second, third] = lines as readonly [Posting, Posting, Posting];
    const shifted = [{ ...first, cents: 99 }, { ...second, cents: 251 }, third];
    const { figures, problems } = judged({ postings: shifted });
    expect(figures.balanceActual).toBe(figures.balanceExpected);
    expect(problems).toEqual(['no. 0 paid a wrong amount to 2 merchants', '2 of 2 balances are wrong']);
  });

  it('sees balances that the lines do not explain', () => {
    const balances = [
      { merchant: 1, cents: 105 },
      { merchant: 2, cents: 500 },
    ];
    expect(judged({ balances }).problems).toContain('the lines add up to 3.55, the balances to 6.05');
  });

  it('is bad when the faults did not show what they are there for', () => {
    const { problems } = judged({ runs: [run, { ...run, takeovers: 0 }], refusedWrites: 1 });
    expect(problems).toEqual(['only 1 runs were taken over', 'only 1 writes were refused']);
  });

  it('asks for no runs where there was no guard', () => {
    const { figures, problems } = judged({ runs: undefined, refusedWrites: 0 });
    expect(problems).toEqual([]);
    expect(figures).toMatchObject({ completed: 2, takeovers: 0 });
  });
});

/** Judges good books with these changes; balances follow the lines unless they are given. */
function judged(changes: Partial<Evidence>): ReturnType<typeof judge> {
  const postings = changes.postings ?? lines;
  const balances = [1, 2].map((merchant) => ({
    merchant,
    cents: postings.reduce((sum, line) => sum + (line.merchant === merchant ? line.cents : 0), 0),
  }));
  const good = { owed, postings, balances, runs: [run, run], refusedWrites: 2, nodes: 3, ms: 1 };
  return judge({ ...good, ...changes }, (occurrence) => `no. ${occurrence}`);
}
