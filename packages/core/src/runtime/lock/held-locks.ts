/** All locks that one guard holds: who is told when the clocks jump, a notice comes, or the guard closes. */
import type { Clock } from '../../port/clock.js';
import { ClockWatch } from './clock-watch.js';
import { Lease } from './held-lock.js';
import type { Placed } from './lease-host.js';
import type { Scheduler } from '../flight/scheduler.js';

/** The held locks of a guard. */
export class HeldLocks {
  /** In no order, each at its own `place`: taking and giving back a lock moves one entry at most. */
  private readonly leases: Lease[] = [];
  /** By claim. Made by the first notice that names one, and kept while locks are held: most locks need none. */
  private byClaim: Map<string, Lease> | undefined;
  private readonly clockWatch: ClockWatch;

  constructor(
    clock: Clock,
    private readonly scheduler: Scheduler,
  ) {
    this.clockWatch = new ClockWatch(
      clock,
      scheduler,
      () => this.leases.length > 0,
      (jumpMonoMs) => this.lookAtAll(jumpMonoMs),
    );
  }

  add(lease: Lease): void {
    if (this.leases.length === 0) this.clockWatch.start();
    lease.place = this.leases.push(lease) - 1;
    this.byClaim?.set(lease.claim, lease);
  }

  /** Without effect where it was removed before. */
  remove(lease: Placed): void {
    const { place } = lease;
    if (place < 0) return;
    lease.place = -1;
    const last = this.leases.pop()!;
    if (last !== lease) {
      this.leases[place] = last;
      last.place = place;
    }
    if (this.leases.length === 0) this.byClaim = undefined;
    else this.byClaim?.delete(lease.claim);
  }

  get(claim: string): Lease | undefined {
    this.byClaim ??= new Map(this.leases.map((lease) => [lease.claim, lease]));
    return this.byClaim.get(claim);
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
    for (const lease of [...this.leases]) if (lease.isHandle) lease.close();
  }

  /** Tells everybody that the lock is lost. What settles gives it back; what does not keeps its lease unrenewed. */
  dropAll(): void {
    for (const lease of [...this.leases]) lease.drop();
  }

  /** `true`: there is a lock left whose lease was renewed for the last time before then. */
  private lookAtAll(jumpMonoMs: number): boolean {
    let left = false;
    for (const lease of [...this.leases]) {
      lease.look();
      left ||= lease.isTrustedSinceBefore(jumpMonoMs);
    }
    return left;
  }
}
