/**
 * Keys of this process that no claim of it knows. A request that is carried out after its claim was given back, given up
 * or lost makes one: others of this process would keep its lease alive, nobody would ever give it back, and everybody
 * would wait behind it (L3). So whoever meets one says its name here, and it is looked at and taken away.
 */
import type { Clock } from '@guard/core';
import type { IKeyValue } from 'etcd3';
import type { Claims, Own } from './claims.js';
import type { EtcdConnection } from './connection.js';
import type { HandOvers, StrayKeys } from './hand-over.js';
import type { Sessions } from './sessions.js';
import { clear } from './statements/release.js';
import { found, oldest } from './statements/txn.js';

const AGAIN_MS = 1_000;
/** What is there longer than this is ended by its lease, or met again. */
const MAX_LOOKS = 60;
/** Whoever waits behind one finds it sooner. */
const LONGEST_DELAY_MS = 3_600_000;

/** The strays of one adapter. */
export class Strays implements StrayKeys {
  private readonly looking = new Set<string>();
  /** When names are looked at of which a request was not answered. */
  private readonly due = new Map<string, number>();
  private closed = false;

  constructor(
    private readonly connection: EtcdConnection,
    private readonly clock: Clock,
    private readonly claims: Claims,
    private readonly sessions: Sessions,
    private readonly handOvers: HandOvers,
  ) {}

  /** Takes the key of this name away if no claim knows it. */
  look(name: Buffer): void {
    const text = name.toString('latin1');
    if (this.looking.has(text)) return;
    this.looking.add(text);
    void this.lookOver(name).then(() => this.looking.delete(text));
  }

  /** A request that makes a key was not answered. What is met before then is looked at all the same. */
  lookAfter({ name }: Own, ms: number): void {
    const text = name.toString('latin1');
    const dueMs = this.clock.now().monoMs + Math.min(ms, LONGEST_DELAY_MS);
    const isSet = this.due.has(text);
    this.due.set(text, Math.max(dueMs, this.due.get(text) ?? 0));
    if (!isSet) this.lookWhenDue(name, text);
  }

  lookLater(name: Buffer): void {
    this.clock.setTimer(() => this.look(name), AGAIN_MS, { ref: false });
  }

  /** A notice says that a claim holds the lock of which nobody knows. */
  lookAtHead(key: string): void {
    const read = this.connection.range(oldest(this.connection.names.lock(key), 1).request_range!);
    read.then(
      ({ kvs: [head] }) => void (head !== undefined && this.isStray(head) && this.look(head.key)),
      // Whoever meets it next says so again.
      () => undefined,
    );
  }

  close(): void {
    this.closed = true;
  }

  /** A later request may have put it off. */
  private lookWhenDue(name: Buffer, text: string): void {
    const leftMs = this.due.get(text)! - this.clock.now().monoMs;
    if (leftMs > 0) {
      this.clock.setTimer(() => this.lookWhenDue(name, text), leftMs, { ref: false });
      return;
    }
    this.due.delete(text);
    this.look(name);
  }

  private async lookOver(name: Buffer): Promise<void> {
    for (let looks = 1; looks <= MAX_LOOKS && !this.closed; looks += 1) {
      const isOver = await this.isOver(name).catch(() => false);
      if (isOver) return this.claims.free(name);
      await new Promise<void>((resolve) => this.clock.setTimer(resolve, AGAIN_MS, { ref: false }));
    }
  }

  private async isOver(name: Buffer): Promise<boolean> {
    const { kvs } = await this.connection.range({ key: name });
    const [key] = kvs;
    if (key === undefined) return true;
    if (!this.isStray(key)) return this.isKnown(key);
    return this.take(key);
  }

  private isStray(key: IKeyValue): boolean {
    const { process } = this.connection.names.parseClaim(key.key);
    return process === this.claims.process && this.claims.behind(key) === undefined;
  }

  /** A claim that knows another key than this may be on its way out. */
  private isKnown(key: IKeyValue): boolean {
    const own = this.claims.behind(key);
    return own === undefined || own.created === BigInt(key.create_revision);
  }

  private async take(key: IKeyValue): Promise<boolean> {
    const created = BigInt(key.create_revision);
    const lock = this.connection.names.parseClaim(key.key).key;
    const standing = { created, modified: BigInt(key.mod_revision) };
    const { response } = await this.connection.txn(
      clear(this.connection.names.lock(lock), key.key, standing),
    );
    if (!response.succeeded) return false;
    const left = found(response.responses[1]);
    if (left.length === 0) return true;
    // Without a lease no notice can be left; those who wait find out by asking.
    const session = await this.sessions.take(1_000).catch(() => undefined);
    this.handOvers.passedOn(lock, created, left, session?.lease);
    return true;
  }
}
