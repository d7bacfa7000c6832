/**
 * What the benchmarks make of what they see, on small plays whose figures are known: a suite that looks past two holders,
 * or past a contender that does nothing, would praise it for its speed.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

const BENCHMARKS = join(__dirname, '../../benchmarks');

interface Figures {
  readonly barging: Record<string, number>;
  readonly idle: Record<string, number>;
  readonly wrong: Record<string, unknown>;
  readonly rounds: unknown;
  readonly violations: Record<string, { readonly pairs: number; readonly contend: number }>;
  readonly moments: readonly (readonly number[])[];
  readonly comparison: unknown;
  readonly lines: readonly string[];
  readonly targets: unknown;
}

let figures: Figures;

beforeAll(async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(BENCHMARKS, 'test/judge.mjs')]);
  figures = JSON.parse(stdout) as Figures;
});

it('time in which nobody held the lock though somebody waited is a gap, whoever gets it then', () => {
  expect(figures.barging).toEqual(expect.objectContaining({ gap_p50_ms: 50, gap_p99_ms: 50, violations: 0 }));
});

it('time in which nobody waited is none', () => {
  expect(figures.idle).not.toHaveProperty('gap_p50_ms');
  expect(figures.idle).toEqual({ handovers_per_s: 10, wait_p99_ms: 1, share_min_max: 1, violations: 0 });
});

it('two holders at once, a token that did not grow and a pair that failed are violations; who waits at the end counts', () => {
  expect(figures.wrong).toEqual(
    expect.objectContaining({ violations: 3, failure: 'it gave up', wait_p99_ms: 180, share_min_max: 0.5 }),
  );
});

it('a contender that lets everybody in, does no work or does it twice has violations, and one that is right has none', () => {
  expect(figures.violations['queue']).toEqual({ pairs: 0, contend: 0 });
  for (const name of ['everybody', 'nobody', 'twice']) {
    expect({ name, ...figures.violations[name] }).toEqual({
      name,
      pairs: expect.any(Number),
      contend: expect.any(Number),
    });
    expect(figures.violations[name]!.pairs).toBeGreaterThan(0);
    expect(figures.violations[name]!.contend).toBeGreaterThan(0);
  }
});

it('a contender that fails falls out with its reason, and the others go on', () => {
  expect(figures.rounds).toEqual({
    well: [{ round: 0 }, { round: 1 }, { round: 2 }],
    ill: [{ round: 0 }, { failure: 'it fell ill', violations: 1 }],
  });
});

it('the rounds of a fault share out the renewal period, and the seed moves them within their part', () => {
  for (const moments of figures.moments)
    expect(moments.map((moment) => Math.floor(moment * 5))).toEqual([0, 1, 2, 3, 4]);
  expect(figures.moments[0]).not.toEqual(figures.moments[1]);
});

it('two reports are compared by what they measure, in whatever order it was written, and rows of one alone are counted', () => {
  expect(figures.comparison).toEqual({
    ...{ same: 3, gone: 1, added: 2 },
    // From nothing to something, which no factor can say; half as much again says something where the spread is known.
    changes: [
      { verdict: 'worse', value: 40 },
      { verdict: 'worse', value: 151 },
    ],
  });
});

it('a target that somebody starves for is missed, and one that cannot be judged is named', () => {
  expect(figures.targets).toEqual({
    starved: [{ text: 'redis, 1 process: largest share over the smallest', met: false }],
    unjudged: ['redis, 1 process: gap p50 over a bare message'],
  });
});

it('the progress bar says minutes where seconds say little, and stays on one line of a narrow terminal', () => {
  const [wide, usual, narrow, tiny] = figures.lines;
  expect(wide).toMatch(/^█{15}░{15} {2}50 % {2}67 min left {2}etcd-cluster uncontended$/);
  expect(usual).toBe(wide);
  expect(narrow!.length).toBeLessThanOrEqual(40);
  expect(narrow).toContain('50 %  67 min left');
  expect(tiny!.length).toBeLessThanOrEqual(10);
});

it('a run that is killed leaves no folder behind', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'guard-bench-'));
  try {
    const run = spawn(
      process.execPath,
      [
        join(BENCHMARKS, 'run.mjs'),
        ...['--backend', 'sqlite', '--only', 'uncontended', '--contender', 'raw', '--quick'],
      ],
      { env: { ...process.env, TMPDIR: folder }, stdio: 'ignore' },
    );
    const own = (): string[] => readdirSync(folder).filter((name) => name.startsWith('guard-bench-'));
    while (run.exitCode === null && own().length === 0) await pause(5);
    expect(own()).toHaveLength(1);
    run.kill('SIGKILL');
    for (let looks = 0; looks < 1_000 && own().length > 0; looks += 1) await pause(10);
    expect(own()).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
