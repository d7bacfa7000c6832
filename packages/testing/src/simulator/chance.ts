/** Draws of a seed. */
import type { SeededRandom } from '../clock/seeded-random.js';

/** `true` with this probability. */
export function chance(random: SeededRandom, probability: number): boolean {
  return random.fraction() < probability;
}

/** A number between the two. */
export function between(random: SeededRandom, min: number, max: number): number {
  return min + (max - min) * random.fraction();
}
