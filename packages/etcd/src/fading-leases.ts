/**
 * Leases for what is only to last a while. They are not kept alive: one that was granted lately serves everything that
 * is to last as long, and is left to its end. So a burst of writes costs one lease.
 */
import type { Clock } from '@guard/core';
import { isLeaseGone, type EtcdConnection } from './connection.js';

interface Granted {
  readonly lease: string;
  readonly sentMs: number;
}

/** Leases by how long they last. */
export class FadingLeases {
  private readonly granted = new Map<number, Promise<Granted>>();

  /** `sharedMs`: for how long a lease is used for more; it lasts that much longer. */
  constructor(
    private readonly connection: EtcdConnection,
    private readonly clock: Clock,
    private readonly sharedMs: number,
  ) {}

  /** A lease that lasts at least so long from now. */
  async lease(ms: number): Promise<string> {
    const seconds = Math.min(Math.ceil((ms + this.sharedMs) / 1_000), MAX_SECONDS);
    const current = this.granted.get(seconds);
    if (current !== undefined) {
      const known = await current.catch(() => undefined);
      if (known !== undefined && this.clock.now().monoMs - known.sentMs < this.sharedMs) return known.lease;
      // Somebody else asked for a new one meanwhile.
      if (this.granted.get(seconds) !== current) return this.lease(ms);
    }
    const granting = this.grant(seconds);
    this.granted.set(seconds, granting);
    // Whatever is no longer shared is of no use here.
    if (this.granted.size > MAX_KEPT) this.granted.delete([...this.granted.keys()][0]!);
    return (await granting).lease;
  }

  /** Grants new ones from now on. */
  forget(): void {
    this.granted.clear();
  }

  private async grant(seconds: number): Promise<Granted> {
    const sentMs = this.clock.now().monoMs;
    const { ID } = await this.connection.grant(seconds);
    return { lease: ID, sentMs };
  }
}

/** etcd knows no longer lease. */
const MAX_SECONDS = 9_000_000_000;
const MAX_KEPT = 1_000;
const SHARED_MS = 60_000;

/** Leases for tombstones. */
export class Tombstones {
  private readonly leases: FadingLeases;

  constructor(
    connection: EtcdConnection,
    private readonly clock: Clock,
  ) {
    this.leases = new FadingLeases(connection, clock, SHARED_MS);
  }

  forget(): void {
    this.leases.forget();
  }

  /** A lease for so long, and when the tombstone ends, as a text that compares like the time. */
  async lease(ms: number): Promise<{ readonly lease: string; readonly endsAt: string }> {
    const endsAt = String(Math.ceil(this.clock.now().wallMs + ms)).padStart(16, '0');
    return { lease: await this.leases.lease(ms), endsAt };
  }
}

/**
 * Sends what names such leases. Where somebody ended one of them, nothing of it was carried out: it is sent once more,
 * under new ones.
 */
export async function underLiveLeases<T>(
  leases: readonly { forget(): void }[],
  send: () => Promise<T>,
): Promise<T> {
  try {
    return await send();
  } catch (cause) {
    if (!isLeaseGone(cause)) throw cause;
    for (const each of leases) each.forget();
    return send();
  }
}
