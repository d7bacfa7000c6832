/** The quick soak as one case, the same on every dialect. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeededRandom } from '@guard/testing';
import { soak } from '../soak/soak.js';
import type { SoakStore } from '../soak/store.js';

const LIMIT_MS = 180_000;

/** One case. `storesIn`: makes the store of a scene, in this folder if it is a file. */
export function itSoaks(dialect: string, storesIn: (folder: string) => (scene: string) => SoakStore): void {
  const { seed } = new SeededRandom();
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'guard-soak-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it(
    `[V1] [V2] [V5] [V6] [S7] [S8] [L4] schedules on ${dialect} keep what they promise (GUARD_SEED=${seed})`,
    async () => {
      const results = await soak({
        ...{ profile: 'quick', seed, logs: join(folder, 'of'), newStore: storesIn(folder) },
      });
      const problems = Object.entries(results).map(([scene, { problems: found }]) => [scene, found] as const);
      expect(Object.fromEntries(problems)).toEqual({ even: [], troubled: [], down: [] });
      expect(results['even']!.figures).toMatchObject({ kills: 0, stops: 0, takeovers: 0, refusedWrites: 0 });
      const { kills = 0, stops = 0, takeovers, refusedWrites } = results['troubled']!.figures;
      expect(takeovers).toBeGreaterThanOrEqual(kills + stops);
      expect(refusedWrites).toBeGreaterThanOrEqual(stops);
    },
    LIMIT_MS,
  );
}
