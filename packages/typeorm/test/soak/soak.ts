/** The whole soak of one store: its scenes one after another, or at once where time is short. */
import { SeededRandom } from '@guard/testing';
import { SCENES, type SceneResult } from './scenes.js';
import { prepare, type SoakStore } from './store.js';

/** How much is played: `full` is what the promise says, `quick` the same in twenty seconds. */
export const PROFILES = {
  full: { seconds: 60, realTime: true, atOnce: false },
  quick: { seconds: 10, realTime: false, atOnce: true },
} as const;

/** Name of a profile. */
export type ProfileName = keyof typeof PROFILES;

/** Name of a scene. */
export type SceneName = keyof typeof SCENES;

/** What to play. */
export interface SoakOptions {
  readonly profile: ProfileName;
  readonly seed: number;
  /** Default: all. */
  readonly scenes?: readonly SceneName[];
  /** Path and beginning of the names of files that are not there yet. */
  readonly logs: string;
  /** A new store for a scene. */
  readonly newStore: (scene: string) => SoakStore;
  /** Told of each scene that is over. */
  readonly done?: (scene: string, result: SceneResult) => void;
}

/** What came of all scenes, by their names. */
export type SoakResult = Readonly<Record<string, SceneResult>>;

/** Plays every scene. Rejects only where the processes or the store could not be had. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const { profile, seed, logs, newStore, done } = options;
  const { scenes = Object.keys(SCENES) as SceneName[] } = options;
  const { seconds, realTime, atOnce } = PROFILES[profile];
  const results: Record<string, SceneResult> = {};
  const play = async (name: SceneName): Promise<void> => {
    const store = newStore(name);
    await prepare(store);
    const log = `${logs}-${name}.locks`;
    const result = await SCENES[name]({ store, log, seconds, realTime, random: new SeededRandom(seed) });
    results[name] = result;
    done?.(name, result);
  };
  if (atOnce) await Promise.all(scenes.map(play));
  else for (const name of scenes) await play(name);
  return results;
}
