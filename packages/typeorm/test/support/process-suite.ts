/**
 * Several processes on one database server: real ones, one of which is killed and one stopped past its lease. Each row
 * that they write is behind the fence, so the order of the rows shows whether anybody wrote who had lost the lock.
 */
import { SeededRandom } from '@guard/testing';
import { ensureSchema } from '@guard/typeorm';
import type { DataSourceOptions } from 'typeorm';
import { endChildren, startChild } from './child.js';
import type { Place } from './place-on-server.js';

/** What differs between databases. */
export interface ProcessSuite {
  readonly newPlace: () => Promise<Place>;
  /** Options of the data sources of the test and of its processes. */
  readonly options: (place: Place) => Partial<DataSourceOptions>;
  /** Makes the application's table. */
  readonly createHeld: string;
  /** Writes a key and a token into it. */
  readonly insert: string;
}

const KEYS = ['k0', 'k1', 'k2'];

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Describes the processes. */
export function describeProcesses(database: string, suite: ProcessSuite): void {
  const { seed } = new SeededRandom();
  afterEach(endChildren);

  it(`[S1] [S2] [L4] processes on ${database} write under growing tokens only, over a kill and a stop past the lease, and go on (GUARD_SEED=${seed})`, async () => {
    const place = await suite.newPlace();
    const own = suite.options(place);
    const dataSource = await place.dataSource(own);
    await ensureSchema(dataSource);
    await dataSource.query(suite.createHeld);
    const options = { ...own, url: place.url, poolSize: 4 };
    const children = [0, 1, 2, 3].map((n) =>
      startChild('hammer-on-server.ts', { options, keys: KEYS, insert: suite.insert, seed: seed + n }),
    );
    await Promise.all(children.map((child) => child.next()));
    await pause(1_000);
    const [killed, stopped, ...others] = children;
    killed!.signal('SIGKILL');
    stopped!.signal('SIGSTOP');
    await pause(2_500);
    const written = async (): Promise<{ name: string; token: string | number }[]> =>
      dataSource.query('SELECT name, token FROM held ORDER BY id');
    const before = (await written()).length;
    stopped!.signal('SIGCONT');
    await pause(1_000);
    for (const child of [stopped!, ...others]) child.tell('stop');
    await Promise.all([stopped!, ...others].map((child) => child.next()));
    const rows = await written();
    expect(rows.length).toBeGreaterThan(before);
    for (const key of KEYS) {
      const tokens = rows.filter(({ name }) => name === key).map(({ token }) => BigInt(token));
      expect(tokens.length).toBeGreaterThan(10);
      for (const [n, token] of tokens.entries()) if (n > 0) expect(token).toBeGreaterThan(tokens[n - 1]!);
    }
    await place.close();
  });
}
