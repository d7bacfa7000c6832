/**
 * Renew, for everything that a call names. However many locks stand under one lease, it is one keep-alive, one list of
 * the names under it, and one read that passes the quorum. A lock that is to stand under another lease moves.
 */
import type { Renewal, RenewAnswer } from '@guard/core';
import type { AcquireHost } from './acquiring.js';
import type { Own } from './claims.js';
import { LeaseGone, type Need } from './flight.js';
import { writeValue } from './lock-value.js';
import type { Session } from './sessions.js';
import { sessionFor } from './standing.js';
import { move } from './statements/renew.js';
import { MAX_STEPS } from './statements/txn.js';

interface Renewing {
  readonly renewal: Renewal;
  readonly index: number;
  readonly own: Own;
  readonly to: Session;
}

/** One call of renew. */
export class RenewingCall {
  private readonly answers: RenewAnswer[] = [];

  constructor(private readonly host: AcquireHost) {}

  async run(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    const staying = new Map<Session, Renewing[]>();
    const moving: Renewing[] = [];
    const now = this.host.clock.now();
    for (const [index, renewal] of renewals.entries()) {
      const own = this.host.claims.get(renewal.claim);
      if (
        own?.key !== renewal.key ||
        own.created !== renewal.token ||
        own.home === undefined ||
        own.home.over
      ) {
        this.lost(index, own?.created === renewal.token ? own : undefined);
        continue;
      }
      const to = await sessionFor(this.host.sessions, own, renewal.ttlMs, now);
      const one = { renewal, index, own, to };
      if (to === own.home) staying.set(to, [...(staying.get(to) ?? []), one]);
      else moving.push(one);
    }
    const chunks: Promise<void>[] = [...staying].map(([session, some]) => this.stay(session, some));
    for (let at = 0; at < moving.length; at += MAX_STEPS) {
      chunks.push(this.move(moving.slice(at, at + MAX_STEPS)));
    }
    await Promise.all(chunks);
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
      if (verdict === 'over') return some.forEach(({ index, own }) => this.lost(index, own));
      const { keys, header } = await list;
      if (verdict === 'unsure' || header.raft_term !== (await term))
        throw new Error('etcd did not confirm the lease');
      const names = new Set(keys.map((name) => name.toString('latin1')));
      for (const one of some) {
        if (names.has(one.own.name.toString('latin1'))) this.renewed(one, now.monoMs);
        else this.lost(one.index, one.own);
      }
    } catch (cause) {
      for (const { index } of some) this.answers[index] = { status: 'failed', cause };
    }
  }

  private async move(some: readonly Renewing[]): Promise<void> {
    const { claims, clock, flights } = this.host;
    const sentMs = clock.now().monoMs;
    try {
      const steps = some.map(({ own, to, renewal }) => {
        const value = writeValue(own.claim, false);
        return move(own.lock, own.name, renewal.token, value, to.lease);
      });
      const needs = some.map(({ to, renewal }): Need => ({ session: to, ttlMs: renewal.ttlMs }));
      const landed = await flights.fly(steps, needs);
      for (const [n, one] of some.entries()) {
        if (!landed.answers[n]!.succeeded) {
          this.lost(one.index, one.own);
          continue;
        }
        claims.settle(one.own, one.to, one.renewal.token);
        const verdict = landed.verdict(one.to);
        if (verdict === 'good') this.renewed(one, sentMs);
        else
          this.answers[one.index] = { status: 'failed', cause: new Error('etcd did not confirm the lease') };
      }
    } catch (cause) {
      if (!(cause instanceof LeaseGone)) for (const { own, to } of some) claims.doubt(own, [to]);
      for (const { index } of some) this.answers[index] = { status: 'failed', cause };
    }
  }

  private renewed({ own, index, renewal }: Renewing, sentMs: number): void {
    own.held = true;
    own.untilMs = Math.max(own.untilMs, sentMs + renewal.ttlMs);
    this.answers[index] = { status: 'renewed' };
  }

  private lost(index: number, own: Own | undefined): void {
    if (own !== undefined) this.host.claims.forget(own);
    this.answers[index] = { status: 'lost' };
  }
}
