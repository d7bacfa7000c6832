/** What keeps this node from planning, from when on: noted at every look, and written down with what was missed. */
import { type Absence, type MissedCause, noted } from '../../machine/absence.js';
import type { RunHost } from '../run/run-host.js';

/** The absences of one node since before it was up. */
export class Absences {
  private noted: readonly Absence[];
  private lookedMs: number;

  constructor(private readonly host: RunHost) {
    this.lookedMs = host.time.estimate();
    this.noted = [
      { cause: 'no-node', sinceMs: 0 },
      { cause: 'late', sinceMs: this.lookedMs },
    ];
  }

  get all(): readonly Absence[] {
    return this.noted;
  }

  /** What a look found: `undefined`, that nothing keeps this node from planning. */
  note(hindrance: Exclude<MissedCause, 'no-node' | 'late' | 'shorter-jitter'> | undefined): void {
    const nowMs = this.host.time.estimate();
    const cause = hindrance ?? 'late';
    if (this.noted.at(-1)!.cause !== cause)
      this.noted = noted(this.noted, { cause, sinceMs: this.sinceMs(cause, nowMs) });
    this.lookedMs = nowMs;
  }

  /** It began at some time after the last look; with the store, after its last answer, for a look may not have known. */
  private sinceMs(cause: MissedCause, nowMs: number): number {
    const { clock, book } = this.host;
    if (cause === 'late') return nowMs;
    if (cause !== 'store-away' || book.lastContact === undefined) return Math.min(this.lookedMs, nowMs);
    return nowMs - Math.ceil(clock.now().monoMs - book.lastContact.monoMs);
  }
}
