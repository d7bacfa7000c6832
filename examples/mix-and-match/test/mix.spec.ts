/** The example as it is, on embedded backends and on real servers: needs a build. */
import { startPostgres, startRedis } from '@guard/testing/servers';
import { built, ended, start } from '../../../test/support/example.js';

built();

it('[S3] [S7] books each invoice once, and refuses an older token of another backend', async () => {
  const { code, output } = await ended(start('mix-and-match'));
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
    const { code, output } = await ended(start('mix-and-match', [], env));
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toContain('locks: Redis, runs: postgres');
    expect(output.match(/: booked$/gm)).toHaveLength(3);
  }
});
