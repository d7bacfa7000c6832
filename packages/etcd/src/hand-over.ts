/**
 * Giving claims back, and telling whoever holds the lock then. The lock goes over in the very step that deletes the
 * key; what is told afterwards only wakes the new holder, who would find out by asking as well.
 */
import type { Clock } from '@guard/core';
import type { IKeyValue } from 'etcd3';
import { type Claims, type Own, type Place } from './claims.js';
import type { EtcdConnection } from './connection.js';
import { type Inbox, type Message, writeMessage } from './inbox.js';
import { readValue } from './lock-value.js';
import { type Along, handOver, isOwn, letGo, tell } from './statements/release.js';
import { type Answer, found, type Step } from './statements/txn.js';

/** A claim that waits, as this process knows it. */
interface Next {
  readonly owner: string;
  readonly created: bigint;
  readonly claim: string;
  readonly queue: readonly Place[];
}

/** A claim that is being given back. */
export interface Leave {
  readonly step: Step;
  /** The revision of its key, where that was known. */
  readonly created: bigint | undefined;
  /** To be called once the step is answered, or will never be. */
  readonly done: () => void;
}

/** How many hand-overs are remembered, so that none is told over and over. */
const MAX_TOLD = 1_000;

/** Who looks after keys of this process of which no claim knows. */
export interface StrayKeys {
  /** It may have been given back while the answer was on its way, so it is looked at in a while. */
  lookLater(name: Buffer): void;
  lookAtHead(key: string): void;
}

/** Notices from this adapter to its own claims, and to those of others. */
export class HandOvers {
  /** By lock, the token that was told last. */
  private readonly told = new Map<string, bigint>();
  private readonly slots = new Set<number>();

  constructor(
    private readonly connection: EtcdConnection,
    private readonly claims: Claims,
    private readonly inbox: Inbox,
    private readonly clock: Clock,
    private readonly strays: StrayKeys,
  ) {}

  /**
   * How to give a claim back, with the notice for the next one where that is known. `cancels`: whatever key it has, not
   * only the one that is known. `quiet`: nobody is told in the same step.
   */
  leave(own: Own, cancels: boolean, quiet: boolean): Leave {
    const { lock, name, id } = own;
    const created = cancels ? undefined : own.created;
    const guards = isOwn(name, id, created);
    const along = cancels || quiet ? undefined : this.along(own);
    if (along === undefined) {
      return { step: letGo(lock, name, guards, created !== undefined), created, done: nothing };
    }
    return { step: handOver(lock, name, guards, along.along), created, done: along.done };
  }

  /** What the step of `leave` came to: whether the key was there. Whoever holds the lock now is told. */
  gone(own: Own, { created }: Leave, answer: Answer): boolean {
    const nestedAnswer = answer.responses[0]?.response_txn as Answer | undefined;
    const plain = answer.succeeded ? answer : (nestedAnswer ?? answer);
    if (!plain.succeeded) return false;
    const left = found(plain.responses[1]);
    if (left.length === 0) return true;
    const removed = created ?? plain.responses[0]?.response_delete_range?.prev_kvs[0]?.create_revision;
    if (removed !== undefined) this.passedOn(own.key, BigInt(removed), left, own.home?.lease);
    return true;
  }

  /** The oldest keys after one was deleted: if that one was the holder, the first of them is now. */
  passedOn(key: string, removed: bigint, left: readonly IKeyValue[], lease: string | undefined): void {
    const [head] = left;
    if (head !== undefined && removed < BigInt(head.create_revision)) this.tellHead(key, left, lease);
  }

  /**
   * Somebody saw who is oldest. Where that is a ticket of this process, its predecessor may have died without a word.
   * Tickets of others are left alone: most of them know, and the others ask at a third of their life.
   */
  met(key: string, [head, ...rest]: readonly IKeyValue[]): void {
    if (head === undefined || this.isStray(head) || !readValue(head.value)?.waits) return;
    const { process } = this.connection.names.parseClaim(head.key);
    const isNews = this.told.get(key) !== BigInt(head.create_revision);
    if (process === this.claims.process && isNews) this.tellHead(key, [head, ...rest], undefined);
  }

  /** A notice arrived. */
  arrived({ key, claim, token, queue }: Message): void {
    const own = this.claims.get(claim);
    if (own === undefined) return this.strays.lookAtHead(key);
    // It may speak of another key of the claim, which is gone or will be.
    if (own.key !== key || (own.created ?? BigInt(token)) !== BigInt(token)) return;
    own.toldMs ??= this.clock.now().monoMs;
    own.queue = queue;
    this.inbox.deliver(own.session, { type: 'granted', key, claim, token: BigInt(token) });
  }

  private tellHead(key: string, [head, ...rest]: readonly IKeyValue[], lease: string | undefined): void {
    const value = head === undefined ? undefined : readValue(head.value);
    if (head === undefined || value === undefined || this.isStray(head)) return;
    const { process } = this.connection.names.parseClaim(head.key);
    const token = head.create_revision;
    this.remember(key, BigInt(token));
    const queue = rest.map((kv) => this.place(kv));
    const message: Message = { key, claim: value.claim, token, queue };
    if (process === this.claims.process) return this.arrived(message);
    if (lease === undefined) return;
    const slot = this.takeSlot();
    const name = this.connection.names.notice(process, this.claims.process, slot);
    const sent = this.connection.txn(tell({ name, value: writeMessage(message), lease }));
    // A notice that is lost costs its reader a third of a ticket's life.
    void sent.catch(() => undefined).finally(() => this.slots.delete(slot));
  }

  /** A key of this process that no claim knows is nobody's to be told of. */
  private isStray(head: IKeyValue): boolean {
    const { process } = this.connection.names.parseClaim(head.key);
    if (process !== this.claims.process || this.claims.behind(head) !== undefined) return false;
    this.strays.lookLater(head.key);
    return true;
  }

  /** The notice for the next claim, where it is known and of another process. */
  private along(own: Own): { readonly along: Along; readonly done: () => void } | undefined {
    const next = this.nextOf(own);
    if (next === undefined || own.created === undefined || own.home === undefined) return undefined;
    const { names } = this.connection;
    const { owner, created, claim, queue } = next;
    const process = owner.slice(0, owner.lastIndexOf('.'));
    if (process === this.claims.process) return undefined;
    const slot = this.takeSlot();
    const value = writeMessage({ key: own.key, claim, token: String(created), queue });
    const name = names.notice(process, this.claims.process, slot);
    return {
      along: {
        next: names.ownerKey(own.key, owner),
        created,
        notice: { name, value, lease: own.home.lease },
      },
      done: () => void this.slots.delete(slot),
    };
  }

  private nextOf(own: Own): Next | undefined {
    const [first, ...queue] = own.queue;
    if (first === undefined) return undefined;
    const [owner, created, claim] = first;
    return { owner, created: BigInt(created), claim, queue };
  }

  private place(kv: IKeyValue): Place {
    const { owner } = this.connection.names.parseClaim(kv.key);
    return [owner, kv.create_revision, readValue(kv.value)?.claim ?? ''];
  }

  private remember(key: string, token: bigint): void {
    if (this.told.size >= MAX_TOLD) this.told.clear();
    this.told.set(key, token);
  }

  private takeSlot(): number {
    let slot = 0;
    while (this.slots.has(slot)) slot += 1;
    this.slots.add(slot);
    return slot;
  }
}

function nothing(): void {}
