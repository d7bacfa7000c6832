/** The soak as a program: plays every store, prints a table, and answers the exit code. Started by `main.mjs`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SeededRandom, type WorkerMain } from '@guard/testing';
import { startPostgres } from '@guard/testing/servers';
import { SCENES, type SceneResult } from '../scenes.js';
import { type ProfileName, soak, type SoakResult } from '../soak.js';
import { onFile, onSchema } from '../store.js';

const STORES = ['sqlite', 'postgres'] as const;
type StoreName = (typeof STORES)[number];

const USAGE = `npm run soak:schedules -- [--quick] [--store ${STORES.join(',')}] [--scene ${Object.keys(SCENES).join(',')}] [--seed N] [--json]`;

interface Wishes {
  readonly profile: ProfileName;
  readonly stores: readonly StoreName[];
  readonly scenes: readonly (keyof typeof SCENES)[];
  readonly seed: number;
  readonly json: boolean;
}

const main: WorkerMain<readonly string[], number> = async ({ input }) => {
  const wishes = parse([...input]);
  if (typeof wishes === 'string') {
    console.error(`${wishes}\n${USAGE}`);
    return 2;
  }
  const { seed, profile, stores, json } = wishes;
  console.log(`Seed ${seed}, profile ${profile}.`);
  const folder = mkdtempSync(join(tmpdir(), 'guard-soak-'));
  const results: Partial<Record<StoreName, SoakResult>> = {};
  try {
    for (const store of stores) results[store] = await onStore(store, wishes, join(folder, store));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const ok = Object.values(results).every((scenes) =>
    Object.values(scenes).every(({ problems }) => problems.length === 0),
  );
  console.log(ok ? 'Every occurrence did what was promised.' : 'FAILED.');
  if (json) console.log(JSON.stringify({ ok, seed, profile, stores: results }));
  return ok ? 0 : 1;
};
export default main;

function parse(args: string[]): Wishes | string {
  try {
    const { values } = parseArgs({
      args,
      options: {
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        store: { type: 'string', default: STORES.join(',') },
        scene: { type: 'string', default: Object.keys(SCENES).join(',') },
        seed: { type: 'string' },
      },
    });
    const stores = values.store.split(',');
    const unknown = stores.find((name) => !(STORES as readonly string[]).includes(name));
    if (unknown !== undefined) return `there is no store ${unknown}`;
    const scenes = values.scene.split(',');
    const noScene = scenes.find((name) => !Object.hasOwn(SCENES, name));
    if (noScene !== undefined) return `there is no scene ${noScene}`;
    const seed = values.seed === undefined ? undefined : Number(values.seed);
    if (seed !== undefined && !Number.isInteger(seed)) return `--seed is a whole number, got ${values.seed}`;
    return {
      profile: values.quick ? 'quick' : 'full',
      stores: stores as StoreName[],
      scenes: scenes as Wishes['scenes'],
      seed: new SeededRandom(seed).seed,
      json: values.json,
    };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function onStore(
  store: StoreName,
  { profile, seed, scenes }: Wishes,
  folder: string,
): Promise<SoakResult> {
  const server = store === 'postgres' ? await startPostgres() : undefined;
  try {
    const newStore = (scene: string) =>
      server === undefined ? onFile(`${folder}-${scene}.sqlite`) : onSchema(server.url, `soak_${scene}`);
    const done = (scene: string, result: SceneResult): void => print(store, scene, result);
    return await soak({ profile, seed, scenes, logs: folder, newStore, done });
  } finally {
    await server?.stop();
  }
}

function print(store: string, scene: string, { figures, problems }: SceneResult): void {
  console.log(
    `\n${store}, ${scene}: ${problems.length === 0 ? 'as promised' : `${problems.length} violations`}`,
  );
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  for (const [name, value] of Object.entries(figures)) console.log(`  ${name.padEnd(width)}  ${value}`);
  for (const problem of problems) console.log(`  ! ${problem}`);
}
