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

/** The strays of one adapter. */
export class Strays implements StrayKeys {
  private readonly looking = new Set<string>();
  private closed = false;

  constructor(
    private readonly connection: EtcdConnection,
    private readonly clock: Clock,
    private readonly claims: Claims,
    private readonly sessions: Sessions,
    private readonly handOvers: HandOvers,
  ) {}

  /** Takes the key of this name away if no claim knows it, now or in a while. */
  look(name: Buffer, inMs = 0, isWanted = (): boolean => true): void {
    const text = name.toString('latin1');
    if (this.looking.has(text)) return;
    this.looking.add(text);
    const ended = (): void => void this.looking.delete(text);
    const lookOver = (): void => void (isWanted() ? this.lookOver(name).then(ended) : ended());
    if (inMs === 0) lookOver();
    else this.clock.setTimer(lookOver, inMs, { ref: false });
  }

  /** A request that makes a key was not answered. Where a tombstone refuses it there is nothing to look for. */
  lookAfter(own: Own, ms: number): void {
    this.look(own.name, ms, () => !own.entombed);
  }

  lookLater(name: Buffer): void {
    this.look(name, AGAIN_MS);
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

  private async lookOver(name: Buffer): Promise<void> {
    for (let looks = 1; looks <= MAX_LOOKS && !this.closed; looks += 1) {
      const isOver = await this.isOver(name).catch(() => false);
      if (isOver) return;
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
