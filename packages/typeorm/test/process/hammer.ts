/**
 * Takes locks for a short time, over and over, until it is told to stop; writes down when it held which, by the
 * machine's clock, so that the test can lay the logs of all processes side by side.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom, type WorkerMain } from '@guard/testing';
import { typeormLocks } from '@guard/typeorm';
import { ask, claim, release } from '../support/locking.js';
import { dataSourceOn } from '../support/place.js';

const main: WorkerMain<{ file: string; log: string; keys: number; seed: number }> = async ({
  input,
  tell,
  hear,
}) => {
  const { file, log, keys, seed } = input;
  const random = new SeededRandom(seed);
  const locks = typeormLocks(dataSourceOn(file));
  let stopped = false;
  let failures = 0;

  function note(what: string, key: string, token: bigint): void {
    appendFileSync(
      log,
      `${JSON.stringify({ what, key, token: String(token), ns: String(process.hrtime.bigint()) })}\n`,
    );
  }

  async function work(key: string): Promise<void> {
    while (!stopped) {
      const wanted = claim({ key, ttlMs: 600, ticketTtlMs: 300, wait: true });
      let answer = await ask(locks, wanted);
      while (answer.status !== 'granted' && !stopped) {
        if (answer.status === 'failed') failures += 1;
        await sleep(1 + random.fraction() * 4);
        answer = await ask(locks, wanted);
      }
      if (answer.status !== 'granted') {
        const { id, session } = wanted;
        await locks.release([{ cancel: true, key, claim: id, session, tombstoneMs: 0 }]);
        return;
      }
      note('enter', key, answer.token);
      await sleep(random.fraction() * 3);
      note('exit', key, answer.token);
      await release(locks, { key, claim: wanted.id, token: answer.token, session: wanted.session });
      await sleep(random.fraction() * 3);
    }
  }

  await tell('ready');
  const all = Array.from({ length: keys }, (_, n) => work(`ns/lock/k${n}`));
  await hear();
  stopped = true;
  await Promise.all(all);
  await locks.close();
  await tell({ failures });
};
export default main;
