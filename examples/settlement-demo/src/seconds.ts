/** Occurrences are named by their second. */

/** The run key of a second: `2026-11-29T03:00:00Z`. */
export function keyOf(second: number): string {
  return new Date(second * 1_000).toISOString().replace('.000', '');
}

/** The time of day of a second, for people: `03:00:00`. */
export function timeOf(second: number): string {
  return keyOf(second).slice(11, 19);
}

/** The second that a run key names. */
export function secondOf(key: string): number {
  return Date.parse(key) / 1_000;
}

/** The second that has begun. */
export function thisSecond(): number {
  return Math.floor(Date.now() / 1_000);
}
