/**
 * Markers: one key for each lease that claims stand under, in the inbox of their process. Whatever ends the lease (a
 * person, or a leader that was stopped and comes back) deletes its marker with the locks, and the watch of the inbox
 * sees that at once; a renewal sees it up to a third of the ttl later. The marker goes along with the first transaction
 * that needs the lease, so it costs no request, and nobody waits for the watch: while that is down, renewals find out.
 */
import type { Notice } from '@guard/core';
import type { IRequestOp } from 'etcd3';
import type { Claims } from './claims.js';
import type { EtcdConnection } from './connection.js';
import type { Session, Sessions } from './sessions.js';
import { put } from './statements/txn.js';

const NONE: readonly Session[] = [];
const VALUE = Buffer.from('a lease of this process');

/** The markers of one adapter. */
export class Markers {
  constructor(
    private readonly connection: EtcdConnection,
    private readonly sessions: Sessions,
    private readonly claims: Claims,
    private readonly tell: (session: string, notice: Notice) => void,
  ) {}

  /** Those of which no marker is known to stand. */
  unmarked(needs: readonly { readonly session: Session }[]): readonly Session[] {
    if (needs.every(({ session }) => session.marked)) return NONE;
    return [...new Set(needs.map(({ session }) => session))].filter(({ marked }) => !marked);
  }

  /**
   * Puts a marker. Beside the steps, not as one of them: etcd 3.4 asks for nobody's rights inside of nested transactions,
   * and who has none is to be told so at the first lock (S6).
   */
  put({ lease }: Session): IRequestOp {
    return put(this.nameOf(lease), VALUE, lease);
  }

  /** A key of the inbox is gone. That of a lease which this process gave back is no news. */
  deleted(name: Buffer): void {
    const lease = this.connection.names.markedBy(this.claims.process, name);
    const session = lease === undefined ? undefined : this.sessions.byLease(lease);
    if (session !== undefined) this.lost(session);
  }

  /** Markers may have been deleted while nobody watched. */
  async verify(): Promise<void> {
    const marked = this.sessions.marked();
    if (marked.length === 0) return;
    const range = { ...this.connection.names.markers(this.claims.process), keys_only: true };
    // Without an answer, renewals find out.
    const found = await this.connection.range(range).catch(() => undefined);
    if (found === undefined) return;
    const standing = new Set(found.kvs.map(({ key }) => key.toString('latin1')));
    for (const session of marked) {
      if (!standing.has(this.nameOf(session.lease).toString('latin1'))) this.lost(session);
    }
  }

  /** Whoever stands under the lease is told. A request on its way finds out by itself. */
  private lost(session: Session): void {
    if (session.over) return;
    const under = [...session.claims];
    this.sessions.end(session);
    for (const { id } of under) {
      const own = this.claims.get(id);
      if (own?.home !== session) continue;
      if (own.flights === 0) this.claims.forget(own);
      this.tell(own.session, { type: 'lost', key: own.key, claim: id });
    }
  }

  private nameOf(lease: string): Buffer {
    return this.connection.names.marker(this.claims.process, lease);
  }
}
