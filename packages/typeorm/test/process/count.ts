/** Adds one to a number in the state store, so and so often, each time by compare-and-set. */
import { randomUUID } from 'node:crypto';
import type { WorkerMain } from '@guard/testing';
import { typeormState } from '@guard/typeorm';
import { dataSourceOn } from '../support/place.js';

const main: WorkerMain<{ file: string; key: string; times: number }> = async ({ input, tell }) => {
  const { file, key, times } = input;
  const state = typeormState(dataSourceOn(file));
  let conflicts = 0;

  for (let done = 0; done < times;) {
    const [entry] = await state.read([key]);
    const [answer] = await state.write([
      {
        key,
        value: String(Number(entry!.value) + 1),
        expect: { version: entry!.version },
        writeId: randomUUID(),
        ttl: 'keep',
      },
    ]);
    if (answer!.status === 'written') done += 1;
    else if (answer!.status === 'conflict') conflicts += 1;
    else
      throw new Error(`answered ${answer!.status}`, { cause: 'cause' in answer! ? answer.cause : undefined });
  }
  await state.close();
  await tell({ conflicts });
};
export default main;
