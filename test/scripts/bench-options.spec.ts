/** What `npm run bench` is asked for is read before anything is installed, built or started. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const PROGRAM = join(__dirname, '../../scripts/bench.mjs');
const MANIFEST = join(__dirname, '../../package.json');

function bench(...args: string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' });
  return { code: status, out: stdout, err: stderr };
}

it('--help names every option and ends well', () => {
  const { code, out } = bench('--help');
  expect(code).toBe(0);
  for (const option of ['backend', 'only', 'contender', 'quick', 'json', 'html', 'compare', 'seed'])
    expect(out).toContain(`--${option} `);
});

it.each([
  [['--backend', 'mongodb'], "--backend has no 'mongodb'; it has memory, sqlite, postgres, mariadb, redis"],
  [['--backend', 'redis,'], "--backend has no ''"],
  [['--only', 'speed'], "--only has no 'speed'; it has uncontended, throughput"],
  [['--seed', 'abc'], "--seed takes a whole number from 0 to 2147483647, got 'abc'"],
  [['--json', 'no-such-folder/out.json'], "--json: 'no-such-folder/out.json' cannot be written"],
  [['--html', __dirname], `--html: '${__dirname}' is a folder`],
  [['--compare', 'no-such.json'], "--compare: there is no file 'no-such.json'"],
  [['--compare', __dirname], `--compare: '${__dirname}' cannot be read: `],
  [['--compare', __filename], `--compare: '${__filename}' cannot be read: `],
  [['--compare', MANIFEST], `--compare: '${MANIFEST}' is no report: it has no rows`],
  [['--compare', ''], "--compare: there is no file ''"],
  [['--json', ''], '--json takes the name of a file'],
  [['--json', 'out', '--html', './out'], "--json and --html: both are 'out'"],
  [['--backend', 'redis', '--backend', 'etcd'], '--backend is given twice; several names stand in one'],
  [['--contender', 'guard,'], "--contender: a name is empty in 'guard,'"],
  [['--fast'], "Unknown option '--fast'"],
])('%p is refused with its reason, the usage and exit code 2', (args, reason) => {
  const { code, out, err } = bench(...args);
  expect(code).toBe(2);
  expect(err.startsWith(reason)).toBe(true);
  expect(err).toContain('npm run bench -- [options]');
  expect(out).toBe('');
});
