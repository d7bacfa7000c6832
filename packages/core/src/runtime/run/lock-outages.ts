/**
 * When the lock backend was away, as one node has met it. What was chosen before an outage is judged anew after it; a
 * request that was lost or late on a busy machine is none. A node that started later knows of no outage: where it was
 * long enough for the others to stop planning, what was missed meanwhile is chosen anew anyway.
 */
import { ON_TIME_MS } from '../../machine/schedule.js';
import type { Clock } from '../../port/clock.js';
import type { Events } from '../events.js';

/** The outages of one lock backend. */
export class LockOutages {
  /** A state store of the same name tells by the same events: it counts as well. */
  private down = 0;
  private sinceMonoMs = -Infinity;
  /** The end of the last one. */
  private untilMonoMs = -Infinity;

  constructor(
    events: Events,
    private readonly clock: Clock,
    name: string,
  ) {
    events.on('backend-unavailable', ({ backend }) => backend === name && this.began());
    events.on('backend-recovered', ({ backend }) => backend === name && this.ended());
  }

  /** Whether the backend did not answer when it was last asked. */
  get isAway(): boolean {
    return this.down > 0;
  }

  /** Whether there was no outage since a moment; that and now by whichever clock. */
  hasAnsweredSince(atMs: number, nowMs: number): boolean {
    const { monoMs } = this.clock.now();
    const untilMonoMs = this.isAway && this.isLong(monoMs) ? monoMs : this.untilMonoMs;
    return untilMonoMs < monoMs - (nowMs - atMs);
  }

  private began(): void {
    if (this.down === 0) this.sinceMonoMs = this.clock.now().monoMs;
    this.down += 1;
  }

  private ended(): void {
    this.down -= 1;
    const { monoMs } = this.clock.now();
    if (this.down === 0 && this.isLong(monoMs)) this.untilMonoMs = monoMs;
  }

  /** What a shorter one delays is still on time. */
  private isLong(monoMs: number): boolean {
    return monoMs - this.sinceMonoMs > ON_TIME_MS;
  }
}
