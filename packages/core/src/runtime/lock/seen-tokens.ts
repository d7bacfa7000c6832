/**
 * The largest token this process saw for each key: the last line of S2. It is sent along as the floor, and a grant
 * below it is refused. Bounded by two generations of keys: when the newer one is full, the older one is forgotten.
 * To take the oldest key out of one map for each new key would cost ten locks: the search for it passes by everything
 * that was taken out before.
 */
const KEYS_OF_GENERATION = 10_000;

interface Cell {
  token: bigint;
}

/** Largest tokens by full key. */
export class SeenTokens {
  /** In cells, so that the next token of a known key is no change of the map. */
  private newer = new Map<string, Cell>();
  private older: ReadonlyMap<string, Cell> = new Map<string, Cell>();

  /** The largest token seen for the key, if it is remembered. */
  get(key: string): bigint | undefined {
    return this.cellOf(key)?.token;
  }

  /** What is wrong with a grant whose token is not larger than one that was seen; `undefined`: nothing. */
  wentBack(key: string, token: bigint): Error | undefined {
    if (typeof token !== 'bigint') return new Error('the backend granted a lock without a token');
    const seen = this.get(key);
    if (seen === undefined || token > seen) return undefined;
    return new Error(`the backend granted token ${token} after ${seen}: its counter went back`);
  }

  /** Remembers the token of a grant. `false`: it is not larger than one that was seen before. */
  saw(key: string, token: bigint): boolean {
    const cell = this.cellOf(key);
    if (cell === undefined) {
      this.add(key, { token });
      return true;
    }
    if (token <= cell.token) return false;
    cell.token = token;
    return true;
  }

  private cellOf(key: string): Cell | undefined {
    const cell = this.newer.get(key);
    if (cell !== undefined) return cell;
    const older = this.older.get(key);
    // A key that is used goes on to the next generation.
    if (older !== undefined) this.add(key, older);
    return older;
  }

  private add(key: string, cell: Cell): void {
    if (this.newer.size >= KEYS_OF_GENERATION) {
      this.older = this.newer;
      this.newer = new Map();
    }
    this.newer.set(key, cell);
  }
}
