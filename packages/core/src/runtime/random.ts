/** The system's source of ids and jitter: the only file of Guard that draws random values. */
import { randomFillSync } from 'node:crypto';
import type { Random } from '../port/clock.js';

const ID_BYTES = 16;
/** Bytes of so many ids are drawn together: asking the source costs more than all else that an id does. */
const DRAWN_TOGETHER = 128;

const drawn = Buffer.alloc(ID_BYTES * DRAWN_TOGETHER);
let used = drawn.length;

/** Ids from the cryptographic source; jitter from the cheap one. */
export const systemRandom: Random = {
  id: () => {
    if (used === drawn.length) {
      randomFillSync(drawn);
      used = 0;
    }
    used += ID_BYTES;
    return drawn.toString('base64url', used - ID_BYTES, used);
  },
  fraction: () => Math.random(),
};
