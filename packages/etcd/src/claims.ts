/**
 * What a process knows about its own claims: the name of each one's key, the lease it stands under, and until when
 * anybody believes in it. Nothing here says that a lock is held; etcd says that.
 *
 * Several requests for one claim may be on their way, and answers land in any order. etcd says in each at which revision
 * it was carried out, so what is known of a key is what the answer of the largest revision says.
 */
import type { Claim } from '@guard/core';
import type { IKeyValue } from 'etcd3';
import { readValue } from './lock-value.js';
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
  /** The revision that wrote its key last, where it is known. */
  modified: bigint;
  /** The largest revision of an answer about it. */
  seen: bigint;
  /** How often it was given back, given up or lost: what was asked before that is wanted by nobody any more. */
  ends: number;
  /** A request for it was never answered, and may be carried out still. */
  unanswered: boolean;
  /** The lease that its key stands under. */
  home: Session | undefined;
  /** A request for it was sent, so etcd may know of it. */
  asked: boolean;
  /** It was granted, not only queued. */
  held: boolean;
  /** It was held some time ago, and is still. */
  lasts: boolean;
  /** Ends the watch on its key, where there is one. */
  unwatch: (() => void) | undefined;
  /** On the monotonic clock, since when a notice says that it holds the lock. */
  toldMs: number | undefined;
  /** On the monotonic clock: nobody believes in it after this. */
  untilMs: number;
  /** How many requests for it are on their way. */
  flights: number;
  /** Its key is being taken away, because nobody renewed it. */
  reaped: boolean;
  /** Who comes after it, as far as its predecessor knew. */
  queue: readonly Place[];
  /** Leases that its key may stand under, because a request for it was not answered. */
  doubts: readonly Session[];
}

/**
 * Whether an answer was overtaken by one that landed before it. `known`: the largest revision of an answer when the
 * request was sent. What is below even that comes from a cluster that forgot, and is all that there is.
 */
export function isOvertaken({ seen }: Own, known: bigint, revision: bigint): boolean {
  return revision < seen && revision >= known;
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

  /** The claim behind a key of this process; `undefined`: nobody knows of it, so nobody will ever give it back. */
  behind({ key: name, value }: IKeyValue): Own | undefined {
    const own = this.named(name);
    return readValue(value)?.claim === own?.id ? own : undefined;
  }

  /** Whether a claim of this process has this name. */
  isTaken(name: Buffer): boolean {
    return this.named(name) !== undefined;
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
  settle(own: Own, home: Session, created: bigint, modified: bigint): void {
    own.created = created;
    own.modified = modified;
    const before = own.home;
    own.home = home;
    if (this.byId.get(own.id) === own) this.sessions.join(home, own);
    this.leaveAll(own, before);
  }

  /** What stands under its name was read. `true`: it is its key, and is known from now on. */
  found(own: Own, key: IKeyValue | undefined): boolean {
    if (key === undefined || readValue(key.value)?.claim !== own.id) {
      this.lose(own);
      return false;
    }
    const created = BigInt(key.create_revision);
    if (created !== own.created) this.lose(own);
    const home = this.sessions.byLease(key.lease);
    if (home !== undefined) this.settle(own, home, created, BigInt(key.mod_revision));
    else {
      // It stands under a lease that this process has given back: it will be gone.
      this.leaveHome(own);
      own.created = created;
      own.modified = BigInt(key.mod_revision);
    }
    return true;
  }

  /** A request for it was not answered: its key may stand under these leases. `retires`: they take no new claims. */
  doubt(own: Own, sessions: readonly Session[], retires: boolean): void {
    own.doubts = [...new Set([...own.doubts, ...sessions])];
    for (const session of sessions) {
      if (this.byId.get(own.id) === own) this.sessions.join(session, own);
      if (retires) this.sessions.retire(session);
    }
  }

  /** Its key is gone; the claim may ask anew. */
  lose(own: Own): void {
    this.leaveHome(own);
    own.created = undefined;
    own.held = false;
    own.lasts = false;
    own.unwatch?.();
    own.toldMs = undefined;
    own.queue = [];
  }

  /** Its key is gone, or will never be there: the name is free for the next one. `burn`: somebody else has it. */
  forget(own: Own, burn = false): void {
    own.ends += 1;
    this.lose(own);
    if (this.byId.get(own.id) !== own) return;
    this.byId.delete(own.id);
    const slots = this.byKey.get(own.key);
    if (burn) slots?.set(own.slot, 'burnt');
    else slots?.delete(own.slot);
    if (slots?.size === 0) this.byKey.delete(own.key);
  }

  /** Nobody asks for the claim any more. */
  forgetById(id: string): void {
    const own = this.byId.get(id);
    if (own !== undefined) this.forget(own);
  }

  /** Nothing has this name any more that no claim knows. */
  free(name: Buffer): void {
    const { key, owner } = this.names.parseClaim(name);
    const slots = this.byKey.get(key);
    const slot = slotOf(owner);
    if (slots?.get(slot) !== 'burnt') return;
    slots.delete(slot);
    if (slots.size === 0) this.byKey.delete(key);
  }

  private named(name: Buffer): Own | undefined {
    const { key, owner } = this.names.parseClaim(name);
    const own = this.byKey.get(key)?.get(slotOf(owner));
    return own === 'burnt' ? undefined : own;
  }

  private leaveHome(own: Own): void {
    const before = own.home;
    own.home = undefined;
    this.leaveAll(own, before);
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

/** The number in the second part of a key's name. */
function slotOf(owner: string): number {
  return Number(owner.slice(owner.lastIndexOf('.') + 1));
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
    modified: 0n,
    seen: 0n,
    ends: 0,
    unanswered: false,
    home: undefined,
    asked: false,
    held: false,
    lasts: false,
    unwatch: undefined,
    toldMs: undefined,
    untilMs: Infinity,
    flights: 0,
    reaped: false,
    queue: [],
    doubts: [],
  };
}
