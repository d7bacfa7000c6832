/**
 * The largest token this process saw for each key: the last line of S2. It is sent along as the floor, and a grant
 * below it is refused. Bounded: the keys that were met first are forgotten first.
 */
const MAX_KEYS = 10_000;

/** Largest tokens by full key. */
export class SeenTokens {
  private readonly tokens = new Map<string, bigint>();

  /** The largest token seen for the key, if it is remembered. */
  get(key: string): bigint | undefined {
    return this.tokens.get(key);
  }

  /** Remembers a token. */
  saw(key: string, token: bigint): void {
    const known = this.tokens.get(key);
    if (known !== undefined && known > token) return;
    if (known === undefined && this.tokens.size >= MAX_KEYS)
      this.tokens.delete(this.tokens.keys().next().value!);
    this.tokens.set(key, token);
  }
}
