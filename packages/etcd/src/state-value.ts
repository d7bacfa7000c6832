/**
 * Values of the keys of state, as etcd can compare them: an entry begins with the id of its write, a fence with its lock
 * and a token whose texts compare like numbers.
 *
 * An entry that is large begins with a mark that is above every id. Nothing in etcd says how large a value is before it
 * is read, and a client bears 4 MB in one message; the mark lets a read ask for many entries on the condition that all
 * of them are small.
 */

/** What is longer is large: a hundred that are not are far from what a client takes in one message. */
const SMALL_BYTES = 16_384;

/** Values of small entries are below it, in the order of their bytes. */
export const LARGE_MARK = '~';

export function isSmall(value: string): boolean {
  return Buffer.byteLength(value) <= SMALL_BYTES;
}

/** The value of a key of an entry. */
export function entryValue(writeId: string, value: string): Buffer {
  return Buffer.from(`${markOf(value)}${writeId}\n${value}`);
}

/** The value without the id of its write. */
export function valueOf(value: Buffer): string {
  return value.subarray(value.indexOf('\n') + 1).toString();
}

/** The token of a fence's value. */
export function tokenOf(value: Buffer): bigint {
  const text = value.toString();
  return BigInt(text.slice(text.lastIndexOf('\0') + 1));
}

/** Texts between which every value of this write stands, and no other. */
export function boundsOfWrite(writeId: string, value: string): readonly [string, string] {
  const start = `${markOf(value)}${writeId}`;
  return [`${start}\n`, `${start}\v`];
}

/** The value of a fence. */
export function fenceText(lock: string, token: bigint): string {
  return `${lock}\0${token.toString().padStart(20, '0')}`;
}

/** Texts between which every fence of this lock with a larger token stands, and no other. */
export function boundsAbove(lock: string, token: bigint): readonly [string, string] {
  return [fenceText(lock, token), `${lock}\0:`];
}

function markOf(value: string): string {
  return isSmall(value) ? '' : LARGE_MARK;
}
