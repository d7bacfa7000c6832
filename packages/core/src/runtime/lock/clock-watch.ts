/**
 * Sees that the machine slept. While it sleeps the monotonic clock can stand still, so no timer of ours fires in time;
 * the wall clock shows it afterwards. While locks are held, the two are compared twice a second.
 */
import type { Clock } from '../../port/clock.js';
import type { Scheduler } from '../flight/scheduler.js';

const CHECK_MS = 500;
/** Smaller steps are the clock being slewed; each lock meets its own deadline on both clocks anyway. */
const JUMP_MS = 20;

/** Watches for the wall clock to run ahead of the monotonic one. */
export class ClockWatch {
  private readonly check = { dueMonoMs: 0, slot: -1, fire: (): void => this.compare() };
  private offsetMs = 0;
  /** When the last jump was seen, on the monotonic clock, while it still matters. */
  private jumpMonoMs: number | undefined;

  /**
   * `look` is called after a jump, and again at every check for as long as it says that something stands on a time
   * before that jump: its deadline on the wall clock has no timer. Watching ends when `isWatched` says so.
   */
  constructor(
    private readonly clock: Clock,
    private readonly scheduler: Scheduler,
    private readonly isWatched: () => boolean,
    private readonly look: (jumpMonoMs: number) => boolean,
  ) {}

  /** Watches until nothing is held any more. */
  start(): void {
    if (this.check.slot >= 0) return;
    const { monoMs, wallMs } = this.clock.now();
    this.offsetMs = wallMs - monoMs;
    this.scheduler.schedule(this.check, monoMs + CHECK_MS);
  }

  private compare(): void {
    if (!this.isWatched()) return;
    const { monoMs, wallMs } = this.clock.now();
    const jumpedMs = wallMs - monoMs - this.offsetMs;
    this.offsetMs = wallMs - monoMs;
    if (jumpedMs > JUMP_MS) this.jumpMonoMs = monoMs;
    if (this.jumpMonoMs !== undefined && !this.look(this.jumpMonoMs)) this.jumpMonoMs = undefined;
    this.scheduler.schedule(this.check, monoMs + CHECK_MS);
  }
}
