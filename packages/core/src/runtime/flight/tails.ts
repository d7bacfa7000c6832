/**
 * The last operation of each key that has one, in cells that stay for a while after it left: the keys that come back cost
 * no change of a map, which would leave its tables behind each time (see `fresh-map.ts`). That took a quarter of a busy
 * client's time.
 */

/** Where the last operation of a key stands; `undefined`: none is left. */
export interface Cell<Op> {
  tail: Op | undefined;
}

/** An operation that knows its cell. */
export interface Tailed<Op> {
  readonly key: string;
  cell: Cell<Op> | undefined;
}

/** Cells of keys without an operation that stay at least. */
const SPARE = 64;
/** The same while nothing is to be done. */
const SPARE_WHILE_IDLE = 8;

/** The last operations of all keys. */
export class Tails<Op extends Tailed<Op>> {
  private cells = new Map<string, Cell<Op>>();
  private keys = 0;

  /** Whether no key has an operation. */
  get isEmpty(): boolean {
    return this.keys === 0;
  }

  /** Makes it the last one of its key; answers which was that before. */
  append(op: Op): Op | undefined {
    const cell = this.cells.get(op.key) ?? this.newCell(op.key);
    const { tail } = cell;
    if (tail === undefined) this.keys += 1;
    cell.tail = op;
    op.cell = cell;
    return tail;
  }

  /** It has left; without effect where another one of its key came after it. */
  leave(op: Op): void {
    const { cell } = op;
    if (cell?.tail !== op) return;
    cell.tail = undefined;
    this.keys -= 1;
    if (this.keys === 0 && this.cells.size > SPARE_WHILE_IDLE) this.cells = new Map();
  }

  private newCell(key: string): Cell<Op> {
    if (this.cells.size >= Math.max(SPARE, 2 * this.keys)) this.dropSpare();
    const cell = { tail: undefined };
    this.cells.set(key, cell);
    return cell;
  }

  /** In a new map: the tables of the old one do not point at those of this one. */
  private dropSpare(): void {
    const busy = new Map<string, Cell<Op>>();
    for (const [key, cell] of this.cells) if (cell.tail !== undefined) busy.set(key, cell);
    this.cells = busy;
  }
}
