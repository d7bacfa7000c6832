/** The example as it is, on embedded SQLite and on a real server: needs a build. */
import { startPostgres } from '@guard/testing/servers';
import { built, ended, start } from '../../../test/support/example.js';

built();

it('[S1] [S7] loses no payment of two replicas, and settles once', async () => {
  const { code, output } = await ended(start('typeorm-service'));
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain('database: better-sqlite3');
  expect(output.match(/^replica-\d {2}settled /gm)).toHaveLength(1);
  expect(output).toContain('No payment was lost, and the fee was taken once.');
});

it('[S1] [S7] does the same on a Postgres that is there, and again on what is there by then', async () => {
  await using postgres = await startPostgres();
  for (let times = 0; times < 2; times++) {
    const { code, output } = await ended(start('typeorm-service', [], { POSTGRES_URL: postgres.url }));
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toContain('database: postgres');
    expect(output.match(/^replica-\d {2}settled /gm)).toHaveLength(1);
    expect(output).toContain('No payment was lost, and the fee was taken once.');
  }
});
