/**
 * Series of instants, and the questions that are asked about them. A calendar can only say which instant comes next;
 * everything else is found from that one answer, so what runs, what is named and what is counted can never disagree.
 *
 * All times are milliseconds since the epoch. Every question has a limit: a series may be dense, and an answer slow.
 */

/** A series of instants. */
export interface Calendar {
  /** The first instant after `afterMs`; `undefined` where none follows. */
  next(afterMs: number): number | undefined;
}

/** A number of instants; `atLeast`: counting stopped there. */
export interface Counted {
  readonly count: number;
  readonly atLeast: boolean;
}

/** The longest way that an instant is early, and waited for, when a timer of somebody else comes before it. */
const MAX_EARLY_MS = 500;
/** Instants that are counted one by one. */
export const MAX_COUNTED = 1_000;
/** Instants that are walked over one by one before the search halves intervals. */
const MAX_WALKED = 32;
/** How far to look back, step by step: an instant is most often near. Beyond the last one there is none. */
const LOOK_BACK_MS = [1_000, 60_000, 3_600_000, 86_400_000, 32 * 86_400_000, 367 * 86_400_000];
const LONGEST_BACK_MS = 40 * 366 * 86_400_000;

/** Instants at whole multiples of `everyMs` since the epoch: the same on every node. */
export function everyCalendar(everyMs: number): Calendar {
  return { next: (afterMs) => (Math.floor(afterMs / everyMs) + 1) * everyMs };
}

/** The last instant at or before `atMs` and after `afterMs`. */
export function latestUpTo(calendar: Calendar, atMs: number, afterMs = -Infinity): number | undefined {
  for (const backMs of [...LOOK_BACK_MS, LONGEST_BACK_MS]) {
    const fromMs = Math.max(atMs - backMs, afterMs);
    const first = calendar.next(fromMs);
    if (first !== undefined && first <= atMs) return lastFrom(calendar, first, atMs);
    if (fromMs === afterMs) return undefined;
  }
  return undefined;
}

/** How many instants lie after `afterMs` and up to `upToMs`, but for some. Looks at up to 1,000, the oldest ones. */
export function countUpTo(
  calendar: Calendar,
  afterMs: number,
  upToMs: number,
  isLeftOut: (instantMs: number) => boolean = () => false,
): Counted {
  const looked = listUpTo(calendar, afterMs, upToMs, MAX_COUNTED);
  const count = looked.filter((at) => !isLeftOut(at)).length;
  const isFull = looked.length === MAX_COUNTED;
  return { count, atLeast: isFull && (calendar.next(looked.at(-1)!) ?? Infinity) <= upToMs };
}

/** The next instants after `afterMs`, at most `limit`, up to `upToMs`. */
export function listUpTo(calendar: Calendar, afterMs: number, upToMs: number, limit: number): number[] {
  const found: number[] = [];
  let at = calendar.next(afterMs);
  while (at !== undefined && at <= upToMs && found.length < limit) {
    found.push(at);
    at = calendar.next(at);
  }
  return found;
}

/** Whether `atMs` is one of the instants. */
export function isInstant(calendar: Calendar, atMs: number): boolean {
  return calendar.next(atMs - 1) === atMs;
}

/**
 * The instant that a call at `nowMs` stands for, where somebody else's timer follows the same series: the last one,
 * or the next one if it is so near that the timer must have come early. It may lie ahead: then wait for it.
 */
export function nearest(calendar: Calendar, nowMs: number): number | undefined {
  const last = latestUpTo(calendar, nowMs);
  const next = calendar.next(nowMs);
  if (next === undefined) return last;
  if (last === undefined) return next - nowMs <= MAX_EARLY_MS ? next : undefined;
  return next - nowMs <= Math.min(MAX_EARLY_MS, (next - last) / 4) ? next : last;
}

/** The last instant up to `upToMs`, from one that is known: by walking, then by halving. */
function lastFrom(calendar: Calendar, first: number, upToMs: number): number {
  let last = first;
  for (let steps = 0; steps < MAX_WALKED; steps += 1) {
    const next = calendar.next(last);
    if (next === undefined || next > upToMs) return last;
    last = next;
  }
  let beyond = upToMs;
  while (last < beyond) {
    const middle = last + Math.ceil((beyond - last) / 2);
    // Is there an instant in [middle, upTo]? Then the last one is there, else before.
    const found = calendar.next(middle - 1);
    if (found !== undefined && found <= upToMs) last = found;
    else beyond = middle - 1;
  }
  return last;
}
