/**
 * The largest token this process saw for each key: the last line of S2. It is sent along as the floor, and a grant
 * below it is refused. Bounded: the keys that were met first are forgotten first.
 */
const MAX_KEYS = 10_000;

/** Largest tokens by full key. */
export class SeenTokens {
  /** In cells, so that the next token of a known key is no change of the map. */
  private readonly cells = new Map<string, { token: bigint }>();

  /** The largest token seen for the key, if it is remembered. */
  get(key: string): bigint | undefined {
    return this.cells.get(key)?.token;
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
    const cell = this.cells.get(key);
    if (cell === undefined) {
      if (this.cells.size >= MAX_KEYS) this.cells.delete(this.cells.keys().next().value!);
      this.cells.set(key, { token });
      return true;
    }
    if (token <= cell.token) return false;
    cell.token = token;
    return true;
  }
}
