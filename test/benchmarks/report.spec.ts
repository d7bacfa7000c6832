/**
 * What `npm run bench` writes: rows of one shape with every field filled, and one HTML file whose charts show their
 * data. A browser opens it, for only a browser knows what can be seen.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const BENCHMARKS = join(__dirname, '../../benchmarks');
/** An installation of Debian's Chromium takes a while. */
const INSTALLATION_MS = 240_000;

interface Row {
  readonly scenario: string;
  readonly contender: string;
  readonly metric: string;
  readonly params: Record<string, unknown>;
  readonly [field: string]: unknown;
}

async function node(program: string, ...args: string[]): Promise<string> {
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [join(BENCHMARKS, program), ...args], {
    maxBuffer: 2 ** 26,
  });
  return stdout;
}

it(
  'the HTML report shows the data of each of its charts',
  async () => {
    const last = (await node('test/look-at-report.mjs')).trim().split('\n').at(-1)!;
    const { faults, elsewhere, seen } = JSON.parse(last);
    expect(faults).toEqual([]);
    expect(elsewhere).toEqual([]);
    const marks = Object.fromEntries(
      seen.map(({ chart, marks: own }: { chart: string; marks: unknown[] }) => [chart, own.length]),
    );
    // A curve for each contender; four whiskers; four holds and four shares; two or three beliefs and one in common; bars.
    expect(marks).toEqual({
      latency: 3,
      throughput: 12,
      handover: 12,
      fairness: 12,
      expiry: 10,
      hold: 12,
      run: 6,
    });
    for (const { chart, promised, loaded, marks: own } of seen) {
      expect({ chart, loaded, marks: own.length }).toEqual({ chart, loaded: true, marks: promised });
      expect(
        own.filter(({ inside, size }: { inside: boolean; size: number }) => !inside || size < 0.4),
      ).toEqual([]);
    }
  },
  INSTALLATION_MS,
);

it('a quick run is planned to take less than a minute for each backend', async () => {
  const planned = JSON.parse(await node('test/quick-plan.mjs')) as Record<string, number>;
  expect(Object.keys(planned)).toEqual([
    ...['memory', 'sqlite', 'postgres', 'mariadb', 'redis', 'etcd', 'etcd-cluster'],
  ]);
  expect(Object.entries(planned).filter(([, ms]) => ms > 60_000)).toEqual([]);
});

it('a run writes rows with every field of the schema filled, and breaks no promise', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'guard-bench-'));
  try {
    const json = join(folder, 'out.json');
    const html = join(folder, 'out.html');
    const said = await node(
      'run.mjs',
      ...['--quick', '--backend', 'memory', '--contender', 'guard,raw'],
      ...['--json', json, '--html', html],
    );
    // The bar with the time that is left, where the output is no terminal; and a median with its spread.
    expect(said).toMatch(/[█░]{30} +\d+ % +\d+ (s|min) left +memory uncontended/);
    expect(said).toMatch(/guard +\S+ \(\S+…\S+\)/);
    const { machine, versions, seed, rows } = JSON.parse(readFileSync(json, 'utf8')) as {
      machine: Record<string, unknown>;
      versions: Record<string, string>;
      seed: number;
      rows: Row[];
    };
    expect(machine).toEqual(
      expect.objectContaining({ cores: expect.any(Number), platform: process.platform }),
    );
    expect(versions).toEqual(expect.objectContaining({ node: process.versions.node }));
    expect(seed).toBe(1);
    for (const row of rows)
      expect(row).toEqual({
        scenario: expect.stringMatching(/^(uncontended|throughput|contention|hold|run|start)$/),
        backend: 'memory',
        contender: expect.stringMatching(/^(guard|raw)$/),
        metric: expect.stringMatching(/^[a-z0-9_]+$/),
        unit: expect.stringMatching(/\S/),
        value: expect.any(Number),
        n: expect.any(Number),
        min: expect.any(Number),
        max: expect.any(Number),
        rounds: expect.any(Array),
        params: expect.any(Object),
      });
    // Five rounds of both in turn; what is counted or lasts long is done once.
    const speeds = rows.filter(({ metric }) =>
      /^(pair_p50_ms|pairs_per_s|handovers_per_s|run_p50_ms)$/.test(metric),
    );
    expect(new Set(speeds.map(({ n, rounds }) => `${String(n)} ${(rounds as number[]).length}`))).toEqual(
      new Set(['5 5']),
    );
    const found = new Set(rows.map(({ scenario, metric }) => `${scenario} ${metric}`));
    expect([...found]).toEqual(
      expect.arrayContaining([
        ...[
          'uncontended pair_p50_ms',
          'uncontended pair_p99_ms',
          'throughput pairs_per_s',
          'throughput violations',
        ],
        ...['contention handovers_per_s', 'contention gap_p50_ms', 'contention wait_p99_ms'],
        ...[
          'contention share_min_max',
          'contention violations',
          'hold client_cpu_pct',
          'hold bytes_per_lock',
        ],
        ...['run run_p50_ms', 'run runs_per_s', 'start import_ms', 'start packed_kb'],
      ]),
    );
    expect(readFileSync(html, 'utf8')).toContain('data-chart="latency"');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 180_000);

it('a run compares with an old report what moved beyond its spread', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'guard-bench-'));
  try {
    const [json, old] = [join(folder, 'out.json'), join(folder, 'old.json')];
    const quick = ['--quick', '--backend', 'memory', '--only', 'uncontended', '--contender', 'guard,raw'];
    await node('run.mjs', ...quick, '--json', json);
    const report = JSON.parse(readFileSync(json, 'utf8')) as { rows: Row[] };
    // As if Guard had been a thousand times as slow, and nothing else had changed by more than its spread.
    const slower = (row: Row): Row =>
      row.contender === 'guard' && row.metric === 'pair_p50_ms' ? times(row, 1_000) : spread(row);
    writeFileSync(old, JSON.stringify({ ...report, rows: report.rows.map(slower) }));
    const said = await node('run.mjs', ...quick, '--compare', old);
    writeFileSync(old, JSON.stringify({ ...report, rows: [{ scenario: 'uncontended' }] }));
    await expect(node('run.mjs', ...quick, '--compare', old)).rejects.toThrow(/is no report: not a row/);
    expect(said).toMatch(/compared with the old report: 1 of (\d+) numbers moved beyond their spread\n/);
    expect(said).toMatch(/ {2}better uncontended, memory, guard, pair_p50_ms, concurrency 1: .* beside raw /);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);

it('a run in which nothing could be played is refused, and names what no backend has', async () => {
  await expect(node('run.mjs', '--backend', 'memory', '--only', 'expiry')).rejects.toThrow(
    'nothing is played: no expiry on memory',
  );
  await expect(
    node('run.mjs', '--backend', 'memory', '--only', 'contention', '--contender', 'raw'),
  ).rejects.toThrow('nothing is played: no contention on memory');
  await expect(node('run.mjs', '--backend', 'memory', '--contender', 'bullmq')).rejects.toThrow(
    "there is no 'bullmq' on memory; there are 'guard', 'raw', 'async-mutex', 'verrou', 'verrou, poll 10 ms'",
  );
});

function times(row: Row, factor: number): Row {
  const { value, min, max, rounds } = row as unknown as Record<'value' | 'min' | 'max', number> & {
    rounds: number[];
  };
  const more = (each: number): number => each * factor;
  return { ...row, value: more(value), min: more(min), max: more(max), rounds: rounds.map(more) };
}

/** Whatever the machine does to the next run lies within. */
function spread(row: Row): Row {
  return { ...row, min: 0, max: Number.MAX_SAFE_INTEGER };
}
