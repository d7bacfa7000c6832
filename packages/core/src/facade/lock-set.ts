/** Several locks as one: held while all are held. */
import type { Lock, LockSet, ReleaseResult } from '../api/lock.js';
import type { HeldLock } from '../runtime/lock/lock-service.js';

const WORSE: readonly ReleaseResult[] = ['released', 'unknown', 'lost'];

/** The locks of one `acquireAll`. */
export class HeldSet implements LockSet {
  private controller: AbortController | undefined;

  constructor(private readonly leases: readonly HeldLock[]) {}

  get locks(): readonly Lock[] {
    return this.leases;
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      const controller = (this.controller = new AbortController());
      for (const lease of this.leases) lease.onLost(() => controller.abort(lease.signal.reason));
    }
    this.isHeld();
    return this.controller.signal;
  }

  isHeld(): boolean {
    return this.leases.every((lease) => lease.isHeld());
  }

  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  async release(): Promise<ReleaseResult> {
    const results = await Promise.all(this.leases.map((lease) => lease.release()));
    return results.reduce((worst, result) => (WORSE.indexOf(result) > WORSE.indexOf(worst) ? result : worst));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
