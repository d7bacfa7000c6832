/**
 * What time it is at a store, without asking every time: one answer of the store, carried on by the local monotonic
 * clock. States and deadlines of runs are counted in this time, so that nodes with wrong wall clocks agree. The error
 * is at most half of the round trip of the answer, plus the drift since.
 *
 * No timer of its own: it looks at the age of its answer whenever it is asked.
 */
import type { Clock } from '../../port/clock.js';
import type { Instant } from '../../value/instant.js';

/** From this age on a new answer is fetched beside the work, without waiting for it. */
const STALE_MS = 60_000;
/** From this age on nothing is said before a new answer came. */
const USELESS_MS = 600_000;
/** The two local clocks went apart by this: the machine slept, or a clock was set, and the estimate may be off. */
const JUMP_MS = 1_000;

interface Sample {
  readonly storeMs: number;
  /** So much the answer may have aged less on its way. */
  readonly halfMs: number;
  readonly at: Instant;
}

/** An estimate of one store's clock. */
export class BackendClock {
  private sample: Sample | undefined;
  private asking: Promise<Sample> | undefined;

  /** `ask` fetches the store's time, with whatever retries the caller wants. */
  constructor(
    private readonly clock: Clock,
    private readonly ask: () => Promise<number>,
  ) {}

  /** The store's time now, in milliseconds since the epoch. Waits for the store at first use and after a sleep. */
  async now(): Promise<number> {
    const { sample } = this;
    if (sample === undefined || this.isUseless(sample)) await this.refresh();
    else if (this.clock.now().monoMs - sample.at.monoMs > STALE_MS) this.refreshBeside();
    return this.estimate();
  }

  /** The same from the last answer, whatever its age; for moves of a run that has begun. */
  estimate(): number {
    const { sample, clock } = this;
    const now = clock.now();
    return sample === undefined ? now.wallMs : Math.round(sample.storeMs + now.monoMs - sample.at.monoMs);
  }

  /** The same, but never ahead of the store's clock: for what must not begin early. */
  atLeast(): number {
    const { sample, clock } = this;
    const now = clock.now();
    if (sample === undefined) return Math.floor(now.wallMs);
    return Math.floor(sample.storeMs - sample.halfMs + now.monoMs - sample.at.monoMs);
  }

  /** This machine's wall clock less the store's; `undefined` before the store was asked. */
  skewMs(): number | undefined {
    return this.sample === undefined ? undefined : Math.round(this.clock.now().wallMs - this.estimate());
  }

  /** Asks the store now. */
  async refresh(): Promise<void> {
    this.asking ??= this.fetch().finally(() => (this.asking = undefined));
    await this.asking;
  }

  private async fetch(): Promise<Sample> {
    const sentAt = this.clock.now();
    const storeMs = await this.ask();
    const gotAt = this.clock.now();
    const halfMs = (gotAt.monoMs - sentAt.monoMs) / 2;
    this.sample = { storeMs: storeMs + halfMs, halfMs, at: gotAt };
    return this.sample;
  }

  private refreshBeside(): void {
    // The estimate at hand is good; a store that cannot be asked shows elsewhere.
    this.refresh().catch(() => undefined);
  }

  private isUseless(sample: Sample): boolean {
    const now = this.clock.now();
    const monoMs = now.monoMs - sample.at.monoMs;
    const wallMs = now.wallMs - sample.at.wallMs;
    return monoMs > USELESS_MS || Math.abs(wallMs - monoMs) > JUMP_MS;
  }
}
