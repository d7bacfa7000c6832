/**
 * What a guard has many of, and takes in and out for each lock: an array in no order, in which each item knows its place.
 * It costs less than a map, and leaves no tables behind (see `fresh-map.ts`).
 */

import { FreshMap } from '../../value/fresh-map.js';

/** What stands in a bag. */
export interface Placed {
  /** Where; -1 while it is in none. Owned by the bag. */
  place: number;
}

/** What belongs to a claim, by whose id it can be looked for. */
export interface OfClaim extends Placed {
  readonly claim: string;
}

/** Items in no order. To come and to go moves one of them at most. */
export class Bag<T extends Placed> {
  protected readonly items: T[] = [];

  get size(): number {
    return this.items.length;
  }

  /** As it is now: who goes through it may take items out meanwhile. */
  all(): readonly T[] {
    return [...this.items];
  }

  add(item: T): void {
    item.place = this.items.push(item) - 1;
  }

  /** Without effect where it was taken out before. */
  remove(item: Placed): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.items.pop()!;
    if (last === item) return;
    this.items[place] = last;
    last.place = place;
  }
}

/** The same, where items are looked for by the id of their claim. */
export class ClaimBag<T extends OfClaim> extends Bag<T> {
  /** Made by the first search, and kept while there is anything: most items are never looked for. */
  private byClaim: FreshMap<string, T> | undefined;

  find(claim: string): T | undefined {
    this.byClaim ??= new FreshMap(this.items.map((item) => [item.claim, item]));
    return this.byClaim.get(claim);
  }

  override add(item: T): void {
    super.add(item);
    this.byClaim?.set(item.claim, item);
  }

  override remove(item: OfClaim): void {
    super.remove(item);
    if (this.items.length === 0) this.byClaim = undefined;
    else this.byClaim?.delete(item.claim);
  }
}
