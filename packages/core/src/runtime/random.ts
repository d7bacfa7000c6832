/** The system's source of ids and jitter: the only file of Guard that draws random values. */
import { randomBytes } from 'node:crypto';
import type { Random } from '../port/clock.js';

/** Ids from the cryptographic source; jitter from the cheap one. */
export const systemRandom: Random = {
  id: () => randomBytes(16).toString('base64url'),
  fraction: () => Math.random(),
};
