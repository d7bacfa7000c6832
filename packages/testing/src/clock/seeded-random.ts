/**
 * Chance that can be played again. Everything a test draws comes from one number, the seed, which the test prints;
 * the same seed gives the same ids and fractions on every machine.
 */
import { createHash } from 'node:crypto';
import { invalidArgument, systemRandom, type Random } from '@guard/core';
import { requireWhole } from '../argument.js';

/** A source of ids and fractions that depends on its seed alone. */
export class SeededRandom implements Random {
  /** Print this: with it the whole run can be played again. */
  readonly seed: number;
  #ids = 0;
  #state: number;

  /** Without a seed: the one of the environment variable `GUARD_SEED`, else a fresh one. */
  constructor(seed: number = seedOfEnvironment()) {
    requireWhole('seed', seed, -Infinity);
    this.seed = seed;
    this.#state = seed | 0;
  }

  /** An id of 128 bits; no two are the same, and those of different seeds differ too. */
  id(): string {
    this.#ids += 1;
    return createHash('sha256')
      .update(`${this.seed}:${this.#ids}`)
      .digest()
      .subarray(0, 16)
      .toString('base64url');
  }

  /** A number in [0, 1). */
  fraction(): number {
    // Weyl sequence with a finaliser that mixes every bit into every other.
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let mixed = this.#state ^ (this.#state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number {
    requireWhole('min', min, -Infinity);
    requireWhole('max', max, min);
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  /** One of the choices. */
  pick<T>(choices: readonly [T, ...T[]]): T {
    const given: unknown = choices;
    if (!Array.isArray(given) || given.length === 0)
      throw invalidArgument('choices', given, 'must be an array of at least one');
    return choices[this.integer(0, choices.length - 1)] as T;
  }
}

function seedOfEnvironment(): number {
  const given = process.env['GUARD_SEED'];
  if (given === undefined) return Math.floor(systemRandom.fraction() * 2_147_483_648);
  const seed = Number(given);
  if (!Number.isSafeInteger(seed)) throw invalidArgument('GUARD_SEED', given, 'must be a whole number');
  return seed;
}
