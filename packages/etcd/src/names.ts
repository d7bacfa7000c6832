/**
 * Names of keys in etcd. A full key is followed by U+0000, which no full key holds, so that the keys of one lock are a
 * range of their own and stand in the order of the full keys' bytes.
 *
 * The name of a claim's key is used again: the process and its lowest free number on that lock, with the claim id in
 * the value. etcd keeps deleted names in its index until a compaction, and every read of the lock walks them.
 */

/** Where a range of keys begins, and the first key behind it. */
export interface KeyRange {
  readonly key: Buffer;
  readonly range_end: Buffer;
}

/** Makes and reads names, below the prefix of the client. */
export class Names {
  private readonly lockStart: Buffer;

  constructor(private readonly prefix: Buffer) {
    this.lockStart = this.name('guard/l/');
  }

  /** Every key of a lock: its holder, and the tickets that wait. */
  lock(key: string): KeyRange {
    return { key: this.name(`guard/l/${key}\0`), range_end: this.name(`guard/l/${key}\u0001`) };
  }

  /** The key of a claim, and every key of its lock. Made for each claim, so with one text to encode. */
  claim(key: string, process: string, slot: number): { readonly name: Buffer; readonly lock: KeyRange } {
    const owner = `${process}.${slot}`;
    const name = this.name(`guard/l/${key}\0${owner}`);
    // The second part of the name is of letters, digits and dots: a byte each.
    const start = name.subarray(0, name.length - owner.length);
    return { name, lock: { key: start, range_end: endOf(start) } };
  }

  /** Everything of all locks below a prefix, after the lock `after`. */
  locksBelow(prefix: string, after: string | undefined): KeyRange {
    const range_end = endOf(this.name(`guard/l/${prefix}`));
    return {
      key: after === undefined ? this.name(`guard/l/${prefix}`) : this.name(`guard/l/${after}\u0001`),
      range_end,
    };
  }

  /** What the name of a claim's key says: the lock's full key, the process, and both process and number. */
  parseClaim(name: Buffer): { readonly key: string; readonly process: string; readonly owner: string } {
    const text = name.subarray(this.lockStart.length).toString();
    const end = text.indexOf('\0');
    const owner = text.slice(end + 1);
    return { key: text.slice(0, end), process: owner.slice(0, owner.indexOf('.')), owner };
  }

  /** Whether it is the key of a claim. */
  isOfLock(name: Buffer): boolean {
    return name.subarray(0, this.lockStart.length).equals(this.lockStart);
  }

  /** A key of a lock by the second part of its name. */
  ownerKey(key: string, owner: string): Buffer {
    return this.name(`guard/l/${key}\0${owner}`);
  }

  /** What refuses the late acquire of a claim that was given up. */
  tombstone(claim: string): Buffer {
    return this.name(`guard/t/${claim}`);
  }

  /** All notices for a process. */
  inbox(process: string): KeyRange {
    const key = this.name(`guard/n/${process}/`);
    return { key, range_end: endOf(key) };
  }

  /** The markers of a process: in its inbox, where no notice is. */
  markers(process: string): KeyRange {
    const key = this.marker(process, '');
    return { key, range_end: endOf(key) };
  }

  /** The marker of a lease. */
  marker(process: string, lease: string): Buffer {
    return this.name(`guard/n/${process}/lease/${lease}`);
  }

  /** The lease that a key of an inbox is the marker of; `undefined`: it is a notice. */
  markedBy(process: string, name: Buffer): string | undefined {
    const start = this.marker(process, '');
    return name.subarray(0, start.length).equals(start) ? name.subarray(start.length).toString() : undefined;
  }

  /** One notice for a process. The sender's own name is used again, so an inbox stays small. */
  notice(process: string, sender: string, slot: number): Buffer {
    return this.name(`guard/n/${process}/${sender}.${slot}`);
  }

  /** A state entry. */
  entry(key: string): Buffer {
    return this.name(`guard/s/${key}`);
  }

  /** All state entries below a prefix, after the entry `after`. */
  entriesBelow(prefix: string, after?: string): KeyRange {
    const range_end = endOf(this.entry(prefix));
    return { key: after === undefined ? this.entry(prefix) : this.entry(`${after}\0`), range_end };
  }

  /** All state entries from one to another, with both. */
  entriesBetween(first: string, last: string): KeyRange {
    return { key: this.entry(first), range_end: this.entry(`${last}\0`) };
  }

  /** The full key that an entry's name stands for. */
  entryKey(name: Buffer): string {
    return name.subarray(this.prefix.length + 'guard/s/'.length).toString();
  }

  /** The fence of a state entry, which outlives it. */
  fence(key: string): Buffer {
    return this.name(`guard/f/${key}`);
  }

  /** The id of the write that deleted a state entry last. */
  deletion(key: string): Buffer {
    return this.name(`guard/d/${key}`);
  }

  private name(text: string): Buffer {
    return Buffer.concat([this.prefix, Buffer.from(text)]);
  }
}

/** The first name that does not start with these bytes; the last of them is never 0xff. */
function endOf(name: Buffer): Buffer {
  const end = Buffer.from(name);
  end[end.length - 1]! += 1;
  return end;
}
