/** Which schedule was in force when: what became of an instant is told by the schedule of its time. */
import type { EarlierDefinition, TaskRecord } from './task-record.js';

/** Earlier schedules that are remembered each by itself. */
const MAX_EARLIER = 8;

/** The schedules before, when another one takes the place of the record's at `nowMs`. */
export function earlierAt(
  { definition, earlier = [] }: TaskRecord,
  nowMs: number,
): readonly EarlierDefinition[] {
  if (definition === undefined) return earlier;
  const { text, sinceMs } = definition;
  return remembered([...earlier, { text, fromMs: sinceMs, toMs: nowMs }]);
}

/** The text of the schedule that had an instant; empty: it is not known any more; `undefined`: there was none. */
export function definitionAt(
  { definition, earlier = [] }: TaskRecord,
  instantMs: number,
): string | undefined {
  if (definition === undefined) return undefined;
  if (instantMs > definition.sinceMs) return definition.text;
  return earlier.find(({ fromMs, toMs }) => fromMs < instantMs && instantMs <= toMs)?.text;
}

/** Where there are too many, of the oldest only the time is known. */
function remembered(earlier: readonly EarlierDefinition[]): readonly EarlierDefinition[] {
  const [oldest, second, ...rest] = earlier;
  if (earlier.length <= MAX_EARLIER || oldest === undefined || second === undefined) return earlier;
  return [{ text: '', fromMs: oldest.fromMs, toMs: second.toMs }, ...rest];
}
