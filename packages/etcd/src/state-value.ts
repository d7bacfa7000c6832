/**
 * Values of the keys of state, as etcd can compare them: an entry begins with the id of its write, a fence with its lock
 * and a token whose texts compare like numbers.
 */

/** The value of a key of an entry. */
export function entryValue(writeId: string, value: string): Buffer {
  return Buffer.from(`${writeId}\n${value}`);
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
export function boundsOfWrite(writeId: string): readonly [string, string] {
  return [`${writeId}\n`, `${writeId}\v`];
}

/** The value of a fence. */
export function fenceText(lock: string, token: bigint): string {
  return `${lock}\0${token.toString().padStart(20, '0')}`;
}

/** Texts between which every fence of this lock with a larger token stands, and no other. */
export function boundsAbove(lock: string, token: bigint): readonly [string, string] {
  return [fenceText(lock, token), `${lock}\0:`];
}
