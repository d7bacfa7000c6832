/**
 * Fencing tokens. One rule for every backend that mints its own: larger than the last one, not below the floor, and
 * not below the time in microseconds, so that a counter that was lost (S2) goes on above its old values.
 */

/** The next token of a key: `max(previous + 1, floor, time in µs)`. */
export function nextToken(previous: bigint, wallMs: number, floor: bigint = 0n): bigint {
  const time = BigInt(Math.floor(wallMs * 1_000));
  const next = previous + 1n;
  const larger = next > time ? next : time;
  return larger > floor ? larger : floor;
}

/** Orders texts by their UTF-16 units: one total order for batches, whatever the locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
