// As much at a time as there are processors, where nothing else is said.
import { availableParallelism } from 'node:os';
import { atLeastOne } from './shown.mjs';

/** Whether `work` answered `true` for every item. Goes on after a failure: each says for itself what went wrong. */
export async function allInLanes(items, work, lanes = availableParallelism()) {
  const waiting = [...atLeastOne('item in a list of work', items)];
  let ok = true;
  const lane = async () => {
    while (waiting.length > 0) ok = (await work(waiting.shift())) && ok;
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return ok;
}
