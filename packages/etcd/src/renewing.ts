/**
 * Renew, for everything that a call names. However many locks stand under one lease, it is one keep-alive, one list of
 * the names under it, and one read that passes the quorum. A lock that is to stand under another lease moves.
 */
import type { Renewal, RenewAnswer } from '@guard/core';
import type { IKeyValue } from 'etcd3';
import type { AcquireHost } from './acquiring.js';
import { isOvertaken, type Own } from './claims.js';
import { isOutOfSpace } from './connection.js';
import { LeaseGone, type Need } from './flight.js';
import { writeValue } from './lock-value.js';
import type { Session } from './sessions.js';
import { sessionFor } from './standing.js';
import { move } from './statements/renew.js';
import { found, MAX_STEPS, read } from './statements/txn.js';

interface Renewing {
  readonly renewal: Renewal;
  readonly index: number;
  readonly own: Own;
  readonly to: Session;
  /** What was known of its key when it was sent: the revision that wrote it last, and that of the last answer. */
  readonly modified: bigint;
  readonly known: bigint;
}

/** One call of renew. */
export class RenewingCall {
  private readonly answers: RenewAnswer[] = [];

  constructor(private readonly host: AcquireHost) {}

  async run(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    const staying = new Map<Session, Renewing[]>();
    const moving: Renewing[] = [];
    const flying: Own[] = [];
    const now = this.host.clock.now();
    try {
      for (const [index, renewal] of renewals.entries()) {
        const own = this.host.claims.get(renewal.claim);
        if (own === undefined || !isHeldAs(own, renewal)) {
          this.lost(index, own?.created === renewal.token && !own.reaped ? own : undefined);
          continue;
        }
        // Nothing is taken away for want of a renewal while one is on its way.
        own.flights += 1;
        flying.push(own);
        const to = await sessionFor(this.host.sessions, own, renewal.ttlMs, now);
        const one = { renewal, index, own, to, modified: own.modified, known: own.seen };
        // A request to move it that was not answered may come late: written again, its key is not what that expects.
        if (to === own.home && !own.unanswered) staying.set(to, [...(staying.get(to) ?? []), one]);
        else moving.push(one);
      }
      // What is known may be newer than what it was before there were leases for all of them.
      const asKnown = (one: Renewing): Renewing => {
        return { ...one, modified: one.own.modified, known: one.own.seen };
      };
      const chunks = [...staying].map(([session, some]) => this.stay(session, some.map(asKnown)));
      for (let at = 0; at < moving.length; at += MAX_STEPS) {
        chunks.push(this.move(moving.slice(at, at + MAX_STEPS).map(asKnown)));
      }
      await Promise.all(chunks);
    } finally {
      for (const own of flying) own.flights -= 1;
    }
    return this.answers;
  }

  private async stay(session: Session, some: readonly Renewing[]): Promise<void> {
    const { connection, clock, flights } = this.host;
    const now = clock.now();
    try {
      const quorum = connection.range({ ...connection.names.lock(''), count_only: true });
      const term = quorum.then(({ header }) => header.raft_term);
      const list = connection.timeToLive(session.lease, true);
      for (const one of [term, list]) one.catch(() => undefined);
      const ttlMs = some.reduce((longest, { renewal }) => Math.max(longest, renewal.ttlMs), 0);
      const verdicts = await flights.lookAfter([{ session, ttlMs }], now, term);
      const verdict = verdicts.get(session) ?? 'good';
      if (verdict === 'over') return await this.over(session, some);
      const { keys, header } = await list;
      if (verdict === 'unsure' || header.raft_term !== (await term)) throw session.unsure();
      const names = new Set(keys.map((name) => name.toString('latin1')));
      const missing: Renewing[] = [];
      for (const one of some) {
        const isThere = names.has(one.own.name.toString('latin1')) && one.own.home === session;
        if (isThere && one.own.created === one.renewal.token) this.renewed(one, now.monoMs);
        else missing.push(one);
      }
      await this.missed(missing);
      this.lookForStrays(session, keys);
    } catch (cause) {
      this.failed(some, cause);
    }
  }

  /** Everything under the lease is gone. What else is on its way for one of them may have moved that. */
  private async over(session: Session, some: readonly Renewing[]): Promise<void> {
    const moved: Renewing[] = [];
    for (const one of some) {
      const { own, index, renewal } = one;
      if (own.flights > 1 || own.home !== session || own.created !== renewal.token) moved.push(one);
      else this.lost(index, own);
    }
    await this.missed(moved);
  }

  /** Not under the lease where they were: gone, or moved by a request that was on its way at the same time. */
  private async missed(some: readonly Renewing[]): Promise<void> {
    for (let at = 0; at < some.length; at += MAX_STEPS) {
      const part = some.slice(at, at + MAX_STEPS);
      const { response } = await this.host.connection.txn({ success: part.map(({ own }) => read(own.name)) });
      const revision = BigInt(response.header.revision);
      part.forEach((one, n) => this.reread(one, found(response.responses[n])[0], revision));
    }
  }

  private reread(one: Renewing, key: IKeyValue | undefined, revision: bigint): void {
    const { own, index, renewal, known } = one;
    if (!isOvertaken(own, known, revision)) {
      own.seen = revision;
      this.host.claims.found(own, key);
    }
    if (own.created !== renewal.token || own.home === undefined || own.home.over) {
      return this.lost(index, own.created === renewal.token || own.created === undefined ? own : undefined);
    }
    this.answers[index] = { status: 'failed', cause: new Error('the lock moved to another lease meanwhile') };
  }

  /** Of what stands under the lease, keys that no claim knows. */
  private lookForStrays(session: Session, keys: readonly Buffer[]): void {
    const { claims, connection, strays } = this.host;
    const ofLocks = keys.filter((name) => connection.names.isOfLock(name));
    if (ofLocks.length <= session.claims.size) return;
    for (const name of ofLocks) if (!claims.isTaken(name)) strays.look(name);
  }

  private async move(some: readonly Renewing[]): Promise<void> {
    const { claims, clock, flights } = this.host;
    const sentMs = clock.now().monoMs;
    try {
      const steps = some.map(({ own, to, renewal, modified }) => {
        const value = writeValue(own.claim, false);
        return move(own.lock, own.name, { created: renewal.token, modified }, value, to.lease);
      });
      const needs = some.map(({ to, renewal }): Need => ({ session: to, ttlMs: renewal.ttlMs }));
      const landed = await flights.fly(steps, needs);
      for (const [n, one] of some.entries()) {
        const { own, to, renewal, index, known } = one;
        const { succeeded, responses } = landed.answers[n]!;
        if (!succeeded) {
          this.reread(one, found(responses[0])[0], landed.revision);
          continue;
        }
        if (!isOvertaken(own, known, landed.revision)) {
          own.seen = landed.revision;
          own.unanswered = false;
          claims.settle(own, to, renewal.token, landed.revision);
        }
        const verdict = own.home === to ? landed.verdict(to) : 'unsure';
        if (verdict === 'good') this.renewed(one, sentMs);
        else this.answers[index] = { status: 'failed', cause: to.unsure() };
      }
    } catch (cause) {
      // Without space it was refused, and the lock stays where it is.
      if (!(cause instanceof LeaseGone) && !isOutOfSpace(cause)) {
        for (const { own, to } of some) {
          own.unanswered = true;
          claims.doubt(own, [to], true);
        }
      }
      this.failed(some, cause);
    }
  }

  private renewed({ own, index, renewal }: Renewing, sentMs: number): void {
    own.held = true;
    this.host.ownKeys.held();
    own.untilMs = Math.max(own.untilMs, sentMs + renewal.ttlMs);
    this.answers[index] = { status: 'renewed' };
  }

  private failed(some: readonly Renewing[], cause: unknown): void {
    for (const { index } of some) this.answers[index] ??= { status: 'failed', cause };
  }

  private lost(index: number, own: Own | undefined): void {
    if (own !== undefined) this.host.claims.forget(own);
    this.answers[index] = { status: 'lost' };
  }
}

/** Whether, as far as is known, it is the very grant, and its key stands. */
function isHeldAs(own: Own, { key, token }: Renewal): boolean {
  if (own.key !== key || own.created !== token || own.reaped) return false;
  return own.home !== undefined && !own.home.over;
}
