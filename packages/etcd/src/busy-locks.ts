/**
 * Locks at which somebody was met lately. A claim of any other lock asks in the short form, which most of the time is
 * all that it takes; at one of these it brings its ticket along at once, so that waiting costs one round.
 */

const LATELY_MS = 10_000;
const MAX_KEPT = 1_000;

/** The busy locks, as far as one adapter knows. */
export class BusyLocks {
  /** By key, when somebody was met there last; the oldest first. */
  private readonly metMs = new Map<string, number>();

  met(key: string, nowMs: number): void {
    this.metMs.delete(key);
    this.metMs.set(key, nowMs);
    if (this.metMs.size > MAX_KEPT) this.forgetOldest();
  }

  /** Whether the next claim had better bring its ticket along. */
  isBusy(key: string, nowMs: number): boolean {
    const metMs = this.metMs.get(key);
    if (metMs === undefined) return false;
    if (nowMs - metMs < LATELY_MS) return true;
    this.metMs.delete(key);
    return false;
  }

  private forgetOldest(): void {
    for (const key of this.metMs.keys()) {
      this.metMs.delete(key);
      return;
    }
  }
}
