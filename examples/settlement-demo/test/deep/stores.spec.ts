/** The demo on stores that are servers, and while they are away. */
import { SeededRandom } from '@guard/testing';
import { ended } from '../../../../test/support/example.js';
import { figuresIn, playing } from '../support/playing.js';

const { seed } = new SeededRandom();

describe(`the demo on servers (GUARD_SEED=${seed})`, () => {
  const { play } = playing();

  it.each(['redis', 'etcd'])(
    'settles every occurrence once with locks and runs on %s',
    async (backend) => {
      const args = ['--json', '--backend', backend, '--occurrences', '8', '--seed', String(seed)];
      const { code, output } = await ended(play(args));
      expect({ code, output }).toMatchObject({ code: 0 });
      const figures = figuresIn(output);
      expect(figures).toMatchObject({ duplicates: 0, missed: 0, nodes: 3 });
      expect(figures['completed']).toBe(figures['occurrences']);
      expect(figures['occurrences']).toBeGreaterThanOrEqual(8);
      expect(figures['takeovers']).toBeGreaterThanOrEqual(2);
      expect(figures['refusedWrites']).toBeGreaterThanOrEqual(2);
      expect(figures['balanceActual']).toBe(figures['balanceExpected']);
    },
    120_000,
  );

  it('[S7] [S8] settles every occurrence once with locks on Redis and runs on Postgres, while each of the two is away in turn', async () => {
    const stores = ['--locks', 'redis', '--runs', 'postgres', '--outage', '4s', '--occurrences', '6'];
    const { code, output } = await ended(play(['--json', ...stores, '--seed', String(seed)]));
    expect({ code, output }).toMatchObject({ code: 0 });
    const figures = figuresIn(output);
    expect(figures).toMatchObject({ occurrences: 18, completed: 18, duplicates: 0, missed: 0 });
    expect(figures['balanceActual']).toBe(figures['balanceExpected']);
    for (const store of ['redis', 'postgres']) {
      expect(output).toMatch(new RegExp(`${store} +the server is killed \\(SIGKILL\\), and away for 4 s`));
      expect(output).toMatch(new RegExp(`${store} +the server is back`));
    }
    expect(output).toContain('a call, to be made again: [unavailable]');
  }, 120_000);
});
