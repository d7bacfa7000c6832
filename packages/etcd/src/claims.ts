/**
 * What a process knows about its own claims: the name of each one's key, the lease it stands under, and until when
 * anybody believes in it. Nothing here says that a lock is held; etcd says that.
 */
import type { Claim } from '@guard/core';
import type { KeyRange, Names } from './names.js';
import type { Session, Sessions } from './sessions.js';

/** One that waits, as a notice carries it: the second part of its key, the revision that created that, its claim. */
export type Place = readonly [owner: string, created: string, claim: string];

/** A claim that has, or may have, a key. */
export interface Own {
  readonly key: string;
  readonly id: string;
  readonly session: string;
  readonly slot: number;
  readonly name: Buffer;
  /** Every key of its lock. */
  readonly lock: KeyRange;
  /** As it was asked last. */
  claim: Claim;
  /** The revision that created its key: the token of its grant. `undefined`: not known, or there is none. */
  created: bigint | undefined;
  /** The lease that its key stands under. */
  home: Session | undefined;
  /** A request for it was sent, so etcd may know of it. */
  asked: boolean;
  /** It was granted, not only queued. */
  held: boolean;
  /** A notice said that it holds the lock. */
  told: boolean;
  /** On the monotonic clock: nobody believes in it after this. */
  untilMs: number;
  /** How many requests for it are on their way. */
  flights: number;
  /** Who comes after it, as far as its predecessor knew. */
  queue: readonly Place[];
  /** Leases that its key may stand under, because a request for it was not answered. */
  doubts: readonly Session[];
}

/** The claims of one adapter. */
export class Claims {
  private readonly byId = new Map<string, Own>();
  private readonly byKey = new Map<string, Map<number, Own | 'burnt'>>();

  constructor(
    private readonly names: Names,
    private readonly sessions: Sessions,
    /** Names this process in the names of its keys. */
    readonly process: string,
  ) {}

  get(id: string): Own | undefined {
    return this.byId.get(id);
  }

  all(): Iterable<Own> {
    return this.byId.values();
  }

  /** The claim behind a key of this process. */
  byOwner(key: string, owner: string): Own | undefined {
    const slot = Number(owner.slice(owner.lastIndexOf('.') + 1));
    const own = this.byKey.get(key)?.get(slot);
    return own === 'burnt' ? undefined : own;
  }

  /** All claims of one session on one key. */
  ofSession(key: string, session: string): Own[] {
    const slots = [...(this.byKey.get(key)?.values() ?? [])];
    return slots.filter((own) => own !== 'burnt').filter((own) => own.session === session);
  }

  /** The claim, known or new. */
  ask(claim: Claim): Own {
    const { id, key, session } = claim;
    const known = this.byId.get(id);
    if (known !== undefined) {
      known.claim = claim;
      return known;
    }
    const slots = this.byKey.get(key) ?? new Map<number, Own | 'burnt'>();
    this.byKey.set(key, slots);
    let slot = 0;
    while (slots.has(slot)) slot += 1;
    const { name, lock } = this.names.claim(key, this.process, slot);
    const own = newOwn({ key, id, session, slot, name, lock, claim });
    slots.set(slot, own);
    this.byId.set(id, own);
    return own;
  }

  /** The claim's key stands under this lease now, and under no other. */
  settle(own: Own, home: Session, created: bigint): void {
    own.created = created;
    const before = own.home;
    own.home = home;
    if (this.byId.get(own.id) === own) this.sessions.join(home, own);
    this.leaveAll(own, before);
  }

  /** A request for it was not answered: these leases take no new claims, and are given back once it is settled. */
  doubt(own: Own, sessions: readonly Session[]): void {
    own.doubts = [...new Set([...own.doubts, ...sessions])];
    for (const session of own.doubts) {
      if (this.byId.get(own.id) === own) this.sessions.join(session, own);
      this.sessions.retire(session);
    }
  }

  /** Its key is gone; the claim may ask anew. */
  lose(own: Own): void {
    const before = own.home;
    own.home = undefined;
    this.leaveAll(own, before);
    own.created = undefined;
    own.held = false;
    own.told = false;
    own.queue = [];
  }

  /** Its key is gone, or will never be there: the name is free for the next one. `burn`: somebody else has it. */
  forget(own: Own, burn = false): void {
    this.lose(own);
    if (this.byId.get(own.id) !== own) return;
    this.byId.delete(own.id);
    const slots = this.byKey.get(own.key);
    if (burn) slots?.set(own.slot, 'burnt');
    else slots?.delete(own.slot);
    if (slots?.size === 0) this.byKey.delete(own.key);
  }

  private leaveAll(own: Own, before: Session | undefined): void {
    if (own.doubts.length === 0) {
      if (before !== undefined && before !== own.home) this.sessions.leave(before, own);
      return;
    }
    const left = new Set([...own.doubts, ...(before === undefined ? [] : [before])]);
    own.doubts = [];
    for (const session of left) if (session !== own.home) this.sessions.leave(session, own);
  }
}

/** Nothing is known of its key yet. */
function newOwn(named: Pick<Own, 'key' | 'id' | 'session' | 'slot' | 'name' | 'lock' | 'claim'>): Own {
  const { key, id, session, slot, name, lock, claim } = named;
  return {
    key,
    id,
    session,
    slot,
    name,
    lock,
    claim,
    created: undefined,
    home: undefined,
    asked: false,
    held: false,
    told: false,
    untilMs: Infinity,
    flights: 0,
    queue: [],
    doubts: [],
  };
}
