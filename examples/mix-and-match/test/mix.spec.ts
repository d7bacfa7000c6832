/** The example as it is, on embedded backends and on real servers: needs a build. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { startPostgres, startRedis } from '@guard/testing/servers';

const build = join(__dirname, '..', '..', '..', 'scripts', 'build.mjs');
const program = join(__dirname, '..', 'dist', 'main.js');

beforeAll(async () => {
  expect(await ended(build)).toMatchObject({ code: 0 });
}, 300_000);

it('[S3] [S7] books each invoice once, and refuses an older token of another backend', async () => {
  const { code, output } = await ended(program);
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain('locks: memory, runs: better-sqlite3');
  expect(output.match(/: booked$/gm)).toHaveLength(3);
  expect(output).toContain('Each invoice was booked once.');
});

it('[S3] [S7] does the same with locks on Redis and runs on Postgres, and again on what is there by then', async () => {
  await using redis = await startRedis();
  await using postgres = await startPostgres();
  const env = { REDIS_URL: redis.url, POSTGRES_URL: postgres.url };
  for (let times = 0; times < 2; times++) {
    const { code, output } = await ended(program, env);
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toContain('locks: Redis, runs: postgres');
    expect(output.match(/: booked$/gm)).toHaveLength(3);
  }
});

async function ended(
  script: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; output: string }> {
  const { REDIS_URL: _redis, POSTGRES_URL: _postgres, ...others } = process.env;
  const child = spawn(process.execPath, [script], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...others, ...env },
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}
