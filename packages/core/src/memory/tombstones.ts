/**
 * Claims that were given up. A tombstone outlives every late request that could still carry the claim; it goes by
 * time, and by age when there are too many, because losing one early costs its key one ttl and nothing else (S4).
 */

/** The most tombstones that are kept. */
export const MAX_TOMBSTONES = 65_536;

/** Given-up claims and until when they are refused, in the order in which they were given up. */
export class Tombstones {
  readonly #untilMs = new Map<string, number>();

  /** How many are kept; 0 is the common case and costs its asker nothing more. */
  get size(): number {
    return this.#untilMs.size;
  }

  /** Whether the claim was given up. */
  covers(claim: string, nowMs: number): boolean {
    const untilMs = this.#untilMs.get(claim);
    return untilMs !== undefined && untilMs > nowMs;
  }

  /** Refuses the claim until `untilMs`; leaving it again never shortens that. */
  leave(claim: string, untilMs: number, nowMs: number): void {
    const beforeMs = this.#untilMs.get(claim) ?? 0;
    this.#untilMs.delete(claim);
    this.#untilMs.set(claim, Math.max(beforeMs, untilMs));
    this.#prune(nowMs);
  }

  /** Tombstones end in about the order in which they were left, so the oldest ones are all there is to look at. */
  #prune(nowMs: number): void {
    for (const [claim, untilMs] of this.#untilMs) {
      if (untilMs > nowMs && this.#untilMs.size <= MAX_TOMBSTONES) return;
      this.#untilMs.delete(claim);
    }
  }
}
