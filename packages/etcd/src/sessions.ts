/**
 * Leases of etcd, shared: all claims of a process whose ttl is the same number of seconds stand under one. A lease
 * lasts a second longer than they ask for, so that a keep-alive sent within that second serves every flight.
 *
 * A keep-alive does not pass the leader's quorum, so a leader that was voted out may still answer it. It counts only
 * where an operation of the same flight, which did pass the quorum, was answered in the same term.
 */
import { GuardError, type Clock, type Instant } from '@guard/core';
import type { EtcdConnection } from './connection.js';
import type { KeepAlive } from './keep-alive.js';

/** What a keep-alive came to. `unsure`: nothing is known about the lease. */
export type Verdict = 'good' | 'over' | 'unsure';

/** What stands under a lease. */
export interface Occupant {
  readonly id: string;
  readonly name: Buffer;
}

/** One lease. */
export class Session {
  /** `false`: it takes no new claims, and is revoked when its last one is gone. */
  open = true;
  over = false;
  /** Its marker stands. */
  marked = false;
  /** Claims that have a key under it, or may have. */
  readonly claims = new Set<Occupant>();
  /** How long the names of their keys are together. */
  bytes = 0;
  /** What was wrong with the last keep-alive that failed. */
  trouble: unknown;

  constructor(
    readonly lease: string,
    readonly leaseMs: number,
    /** When the keep-alive (or the grant) was sent that counts last. */
    public sentAt: Instant,
  ) {}

  /** Whether the lease covers this ttl, counted from `now`, without a further keep-alive. */
  covers(ttlMs: number, now: Instant): boolean {
    return !this.over && ageMs(this.sentAt, now) < (this.leaseMs - ttlMs) * 0.9;
  }

  /** Why nothing was granted or renewed under it, where etcd did not confirm that it lives. */
  unsure(): Error {
    return new Error('etcd did not confirm the lease', { cause: this.trouble });
  }

  /** Whether a flight that is sent now can still find the lease alive. */
  isAlive(now: Instant): boolean {
    return !this.over && ageMs(this.sentAt, now) < this.leaseMs - 500;
  }
}

/** By the larger of both clocks: a machine that slept does not know for how long. */
function ageMs(from: Instant, to: Instant): number {
  return Math.max(to.monoMs - from.monoMs, to.wallMs - from.wallMs);
}

/** etcd answers with all names under a lease, and a client takes 4 MB in one message. */
const MAX_BYTES = 1_500_000;
/** etcd knows no longer lease. */
const MAX_SECONDS = 9_000_000_000;
const LONGEST_SILENCE_MS = 1_000;

/** The leases of one adapter. */
export class Sessions {
  /** By their seconds, the one that takes new claims. */
  private readonly current = new Map<number, Promise<Session>>();
  /** By their seconds, those of `current` that were granted. */
  private readonly granted = new Map<number, Session>();
  private readonly all = new Map<string, Session>();
  private closed = false;

  constructor(
    private readonly connection: EtcdConnection,
    private readonly beats: KeepAlive,
    private readonly clock: Clock,
  ) {}

  /** The session for new claims of this ttl, if it is there and well: most claims need not wait for one. */
  ready(ttlMs: number, now: Instant): Session | undefined {
    const session = this.granted.get(secondsOf(ttlMs));
    return session !== undefined && session.open && session.isAlive(now) ? session : undefined;
  }

  /** Whether somebody waits for a session of this ttl. */
  isOpening(ttlMs: number): boolean {
    const seconds = secondsOf(ttlMs);
    return this.current.has(seconds) && !this.granted.has(seconds);
  }

  /**
   * The session for new claims of this ttl; a new one where there is none that is well.
   *
   * @throws GuardError `closed`.
   */
  async take(ttlMs: number): Promise<Session> {
    if (this.closed) throw new GuardError('closed', 'the locks were closed');
    const seconds = secondsOf(ttlMs);
    const current = await this.current.get(seconds)?.catch(() => undefined);
    if (current !== undefined && this.isWell(current)) return current;
    // Somebody else may have opened one meanwhile.
    const again = this.current.get(seconds);
    const other = await again?.catch(() => undefined);
    if (other !== undefined && other !== current && this.isWell(other)) return other;
    if (this.current.get(seconds) !== again) return this.take(ttlMs);
    const opening = this.grant(seconds);
    this.current.set(seconds, opening);
    this.granted.delete(seconds);
    const isCurrent = (): boolean => this.current.get(seconds) === opening;
    opening.then(
      (session) => isCurrent() && this.granted.set(seconds, session),
      () => isCurrent() && this.current.delete(seconds),
    );
    if (current !== undefined) this.retire(current);
    return opening;
  }

  /** The session for new claims of this ttl, if there is one that is well. */
  async peek(ttlMs: number): Promise<Session | undefined> {
    const current = await this.current.get(secondsOf(ttlMs))?.catch(() => undefined);
    return current !== undefined && this.isWell(current) ? current : undefined;
  }

  /** The session of a lease, if it is of this process. */
  byLease(lease: string): Session | undefined {
    return this.all.get(lease);
  }

  /** Every session that is not over and whose marker stands. */
  marked(): Session[] {
    return [...this.all.values()].filter(({ marked, over }) => marked && !over);
  }

  /** Keeps a session alive. `term`: of an operation of the same flight that passed the quorum. */
  async beat(session: Session, ttlMs: number, term: Promise<string>): Promise<Verdict> {
    const sentAt = this.clock.now();
    const silenceMs = Math.min(LONGEST_SILENCE_MS, ttlMs / 3);
    try {
      const [beat, quorum] = await Promise.all([this.beats.beat(session.lease, silenceMs), term]);
      if (beat.ttlMs <= 0) {
        this.end(session);
        return 'over';
      }
      if (session.over) return 'over';
      if (beat.term !== quorum) {
        session.trouble = new Error('a member answered the keep-alive in another term than the leader');
        return 'unsure';
      }
      session.trouble = undefined;
      if (sentAt.monoMs > session.sentAt.monoMs) session.sentAt = sentAt;
      return 'good';
    } catch (cause) {
      session.trouble = cause;
      return 'unsure';
    }
  }

  /** The session takes no new claims. */
  retire(session: Session): void {
    session.open = false;
    this.settle(session);
  }

  /** The lease is over. */
  end(session: Session): void {
    session.over = true;
    session.open = false;
    this.settle(session);
  }

  /** A claim has, or may have, a key under the session. */
  join(session: Session, own: Occupant): void {
    if (session.claims.has(own)) return;
    session.claims.add(own);
    session.bytes += own.name.length;
    if (session.bytes > MAX_BYTES) session.open = false;
  }

  leave(session: Session, own: Occupant): void {
    if (!session.claims.delete(own)) return;
    session.bytes -= own.name.length;
    this.settle(session);
  }

  /** Gives every lease back under which nothing stands, and each other one once nothing stands under it any more. */
  async close(): Promise<void> {
    this.closed = true;
    this.current.clear();
    this.granted.clear();
    const sessions = [...this.all.values()];
    for (const session of sessions) session.open = false;
    const idle = sessions.filter(({ claims }) => claims.size === 0);
    await Promise.all(idle.map((session) => this.revoke(session)));
  }

  private isWell(session: Session): boolean {
    return session.open && session.isAlive(this.clock.now());
  }

  private async grant(seconds: number): Promise<Session> {
    const sentAt = this.clock.now();
    const { ID, TTL } = await this.connection.grant(seconds);
    const session = new Session(ID, Math.max(seconds, Number(TTL)) * 1_000, sentAt);
    session.open = !this.closed;
    this.all.set(ID, session);
    return session;
  }

  private settle(session: Session): void {
    if (session.open || session.claims.size > 0) return;
    if (session.over) this.all.delete(session.lease);
    else void this.revoke(session);
  }

  private async revoke(session: Session): Promise<void> {
    this.all.delete(session.lease);
    session.over = true;
    // Where it does not get through, the lease ends by itself.
    await this.connection.revoke(session.lease).catch(() => undefined);
  }
}

function secondsOf(ttlMs: number): number {
  return Math.min(Math.floor(ttlMs / 1_000) + 1, MAX_SECONDS);
}
