/**
 * A map and a set for what comes and goes all the time. Those of the language make themselves a new table now and then, and
 * the old one points at the new one: once one of them is old, the garbage collector keeps all later ones, with everything
 * that ever stood in them, until it looks at the whole heap. These are made afresh before it comes to that; half of the
 * time that a queue in memory took went that way.
 */

/** So many at least have left before it is made afresh, and as many as stay, so that copying costs each of them a little. */
const LEFT_AT_LEAST = 32;

/** A map in the order of insertion. */
export class FreshMap<Key, Value> {
  private map: Map<Key, Value>;
  private left = 0;

  constructor(entries?: Iterable<readonly [Key, Value]>) {
    this.map = new Map(entries);
  }

  get size(): number {
    return this.map.size;
  }

  get(key: Key): Value | undefined {
    return this.map.get(key);
  }

  has(key: Key): boolean {
    return this.map.has(key);
  }

  set(key: Key, value: Value): void {
    this.map.set(key, value);
  }

  /** Whoever goes through it may take out what he stands at. */
  delete(key: Key): boolean {
    if (!this.map.delete(key)) return false;
    this.left += 1;
    if (this.left >= LEFT_AT_LEAST && this.left >= this.map.size) {
      this.left = 0;
      this.map = new Map(this.map);
    }
    return true;
  }

  values(): Iterable<Value> {
    return this.map.values();
  }

  /** The one that came first of those that are left. */
  first(): Value | undefined {
    return this.map.values().next().value;
  }

  [Symbol.iterator](): Iterator<[Key, Value]> {
    return this.map[Symbol.iterator]();
  }
}
