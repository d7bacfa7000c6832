/** All locks that one guard holds: who is told when the clocks jump, a notice comes, or the guard closes. */
import type { Clock } from '../../port/clock.js';
import { ClaimBag, type OfClaim } from './bag.js';
import { ClockWatch } from './clock-watch.js';
import { Lease } from './held-lock.js';
import type { Scheduler } from '../flight/scheduler.js';

/** The held locks of a guard. */
export class HeldLocks {
  private readonly leases = new ClaimBag<Lease>();
  private readonly clockWatch: ClockWatch;

  constructor(
    clock: Clock,
    private readonly scheduler: Scheduler,
  ) {
    this.clockWatch = new ClockWatch(
      clock,
      scheduler,
      () => this.leases.size > 0,
      (jumpMonoMs) => this.lookAtAll(jumpMonoMs),
    );
  }

  add(lease: Lease): void {
    if (this.leases.size === 0) this.clockWatch.start();
    this.leases.add(lease);
  }

  get size(): number {
    return this.leases.size;
  }

  /** Without effect where it was removed before. */
  remove(lease: OfClaim): void {
    this.leases.remove(lease);
  }

  get(claim: string): Lease | undefined {
    return this.leases.find(claim);
  }

  /** Renews whatever else is due soon, so that renewals travel together (C3). */
  renewAlongWith(nowMonoMs: number): void {
    for (let due = this.scheduler.peek(); due instanceof Lease; due = this.scheduler.peek()) {
      if (!due.canRenewEarly(nowMonoMs)) return;
      this.scheduler.cancel(due);
      due.renewEarly();
    }
  }

  /** Gives back the locks that were handed out to the application: their holders are told first. */
  closeHandles(): void {
    for (const lease of this.leases.all()) if (lease.isHandle) lease.close();
  }

  /** Tells everybody that the lock is lost. What settles gives it back; what does not keeps its lease unrenewed. */
  dropAll(): void {
    for (const lease of this.leases.all()) lease.drop();
  }

  /** `true`: there is a lock left whose lease was renewed for the last time before then. */
  private lookAtAll(jumpMonoMs: number): boolean {
    let left = false;
    for (const lease of this.leases.all()) {
      lease.look();
      left ||= lease.isTrustedSinceBefore(jumpMonoMs);
    }
    return left;
  }
}
