/** Several processes on one Postgres: real ones, one of which is killed and one stopped past its lease. */
import { SeededRandom } from '@guard/testing';
import { ensureSchema } from '@guard/typeorm';
import { endChildren, startChild } from '../support/child.js';
import { newSchema, onPostgres } from '../support/postgres.js';

jest.setTimeout(90_000);

const postgres = onPostgres();

afterEach(endChildren);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const { seed } = new SeededRandom();

it(`[S1] [S2] [L4] processes write under growing tokens only, over a kill and a stop past the lease, and go on (GUARD_SEED=${seed})`, async () => {
  const place = await newSchema(postgres.server.url);
  const extra = { options: `-c search_path=${place.schema}` };
  const dataSource = await place.dataSource({ extra });
  await ensureSchema(dataSource);
  await dataSource.query('CREATE TABLE held (id serial PRIMARY KEY, key text, token bigint)');
  const options = { type: 'postgres', url: place.url, schema: place.schema, extra, poolSize: 4 };
  const children = [0, 1, 2, 3].map((n) =>
    startChild('hammer-on-server.ts', { options, keys: 3, seed: seed + n }),
  );
  await Promise.all(children.map((child) => child.next()));
  await pause(1_000);
  const [killed, stopped, ...others] = children;
  killed!.signal('SIGKILL');
  stopped!.signal('SIGSTOP');
  await pause(2_500);
  const written = async (): Promise<{ key: string; token: string }[]> =>
    dataSource.query('SELECT key, token FROM held ORDER BY id');
  const before = (await written()).length;
  stopped!.signal('SIGCONT');
  await pause(1_000);
  for (const child of [stopped!, ...others]) child.tell('stop');
  await Promise.all([stopped!, ...others].map((child) => child.next()));
  const rows = await written();
  expect(rows.length).toBeGreaterThan(before);
  for (const key of ['k0', 'k1', 'k2']) {
    const tokens = rows.filter((row) => row.key === key).map(({ token }) => BigInt(token));
    expect(tokens.length).toBeGreaterThan(10);
    for (const [n, token] of tokens.entries()) if (n > 0) expect(token).toBeGreaterThan(tokens[n - 1]!);
  }
  await place.close();
});
