/**
 * Which instants have a record although no plan made it: somebody asked for them, or a call beside another timer ran
 * them. Nobody missed those. They are asked for one by one, because that alone costs nothing where there are few.
 */
import { occurrenceKey } from '../../machine/task-record.js';
import type { RunHost } from './run-host.js';

/** Records that are read, or written, at the same time. */
const AT_ONCE = 16;

/** Those of these instants that have a record. */
export async function recordedOf(
  { book }: RunHost,
  task: string,
  instants: readonly number[],
): Promise<ReadonlySet<number>> {
  const found = await inParts(instants, (at) => book.get({ task, key: occurrenceKey(at) }));
  return new Set(instants.filter((_, place) => found[place] !== null));
}

/** Does the work of many items, some at a time; answers in their order. */
export async function inParts<I, O>(items: readonly I[], work: (item: I) => Promise<O>): Promise<O[]> {
  const done: O[] = [];
  for (let from = 0; from < items.length; from += AT_ONCE) {
    done.push(...(await Promise.all(items.slice(from, from + AT_ONCE).map(work))));
  }
  return done;
}
