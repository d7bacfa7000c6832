/**
 * The largest token this process saw for each key: the last line of S2. It is sent along as the floor, and a grant
 * below it is refused. Bounded: the keys that were met first are forgotten first.
 */
const MAX_KEYS = 10_000;

/** Largest tokens by full key. */
export class SeenTokens {
  private largestAtOnce = 0n;
  private readonly largest = new Map<string, { token: bigint }>();

  /** The largest token seen for the key, if it is remembered. */
  get(key: string): bigint | undefined {
    return this.largest.get(key)?.token;
  }

  /** The same for what a backend answered at once: its tokens grow over all keys, so one number tells. */
  sawAtOnce(token: bigint): boolean {
    if (token <= this.largestAtOnce) return false;
    this.largestAtOnce = token;
    return true;
  }

  /** Remembers a grant's token. `false`: one that is not smaller was seen before. */
  saw(key: string, token: bigint): boolean {
    const seen = this.largest.get(key);
    if (seen === undefined) {
      if (this.largest.size >= MAX_KEYS) this.largest.delete(this.largest.keys().next().value!);
      this.largest.set(key, { token });
      return true;
    }
    if (token <= seen.token) return false;
    seen.token = token;
    return true;
  }
}
