/**
 * What time it is at a store, without asking every time: one answer of the store, carried on by the local monotonic
 * clock. States and deadlines of runs are counted in this time, so that nodes with wrong wall clocks agree. The error
 * is at most half of the round trip of the answer, plus the drift since. It is measured for each sending by itself, and
 * kept with the answer: what is said of two clocks is only what is sure.
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
/** So much two clocks may drift apart, as a part of the time that passes. */
const DRIFT = 0.001;

interface Sample {
  readonly storeMs: number;
  /** So much the answer may have aged more, or less, on its way. */
  readonly halfMs: number;
  readonly at: Instant;
}

/** An estimate of one store's clock. */
export class BackendClock {
  private sample: Sample | undefined;
  private asking: Promise<void> | undefined;

  /** `ask` fetches the store's time, once; `repeated` sends it again for as long as the caller wants. */
  constructor(
    private readonly clock: Clock,
    private readonly ask: () => Promise<number>,
    private readonly repeated: <T>(call: () => Promise<T>) => Promise<T> = (call) => call(),
  ) {}

  /**
   * The store's time now, in milliseconds since the epoch. Waits for the store at first use and after a sleep.
   *
   * `over` asks the store once, by what the caller has in its hands already, and is used wherever the store would be
   * asked. Who holds the last connection of a pool and waits for another one waits for itself.
   */
  async now(over?: () => Promise<number>): Promise<number> {
    const { sample } = this;
    const isUsable = sample !== undefined && !this.isUseless(sample);
    if (isUsable && this.clock.now().monoMs - sample.at.monoMs <= STALE_MS) return this.estimate();
    if (over !== undefined) this.sample = this.better(await this.measured(over));
    else if (isUsable) this.refreshBeside();
    else await this.refresh();
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

  /**
   * This machine's wall clock less the store's, as far as it is sure: what the answer may have aged on its way is taken
   * off. `undefined` before the store was asked, and from a jump of the local clocks until it is asked again.
   */
  skewMs(): number | undefined {
    const { sample, clock } = this;
    if (sample === undefined || this.hasJumped(sample)) return undefined;
    const now = clock.now();
    const offMs = now.wallMs - sample.storeMs - (now.monoMs - sample.at.monoMs);
    const sureMs = Math.round(Math.max(Math.abs(offMs) - sample.halfMs, 0));
    return offMs < 0 ? 0 - sureMs : sureMs;
  }

  /** Asks the store now. */
  async refresh(): Promise<void> {
    this.asking ??= this.fetch().finally(() => (this.asking = undefined));
    await this.asking;
  }

  private async fetch(): Promise<void> {
    this.sample = this.better(await this.repeated(() => this.measured(this.ask)));
  }

  /** One sending: what went before it was lost, and says nothing about how old this answer is. */
  private async measured(ask: () => Promise<number>): Promise<Sample> {
    const sentAt = this.clock.now();
    const storeMs = await ask();
    const gotAt = this.clock.now();
    const halfMs = (gotAt.monoMs - sentAt.monoMs) / 2;
    return { storeMs: storeMs + halfMs, halfMs, at: gotAt };
  }

  /** An answer that was long on its way does not replace a better one that it agrees with. */
  private better(fresh: Sample): Sample {
    const { sample } = this;
    if (sample === undefined || this.isUseless(sample)) return fresh;
    const ageMs = fresh.at.monoMs - sample.at.monoMs;
    const storeMs = sample.storeMs + ageMs;
    const halfMs = sample.halfMs + ageMs * DRIFT;
    const agrees = Math.abs(storeMs - fresh.storeMs) <= fresh.halfMs;
    return agrees && halfMs < fresh.halfMs ? { storeMs, halfMs, at: fresh.at } : fresh;
  }

  private refreshBeside(): void {
    // The estimate at hand is good; a store that cannot be asked shows elsewhere.
    this.refresh().catch(() => undefined);
  }

  private isUseless(sample: Sample): boolean {
    return this.clock.now().monoMs - sample.at.monoMs > USELESS_MS || this.hasJumped(sample);
  }

  private hasJumped({ at }: Sample): boolean {
    const now = this.clock.now();
    return Math.abs(now.wallMs - at.wallMs - (now.monoMs - at.monoMs)) > JUMP_MS;
  }
}
