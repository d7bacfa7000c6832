// One of several processes on one SQLite file: so many workers in a loop, each on a key of its own, until time is up.
// argv: file, contender, workers, start (epoch ms), duration (ms) → one line of JSON.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { DataSource } from 'typeorm';
import { createGuard } from '@guard/core';
import { typeormLocks } from '@guard/typeorm';

const [file, contender, workers, start, duration] = process.argv.slice(2);
const pairOf = { guard: () => guardPair(64), 'one by one': () => guardPair(1), raw: rawPair };
const { pair, close } = await pairOf[contender]();
await pair(`warm.${process.pid}`);
await sleep(Number(start) - Date.now());

const end = performance.now() + Number(duration);
let [pairs, worstMs, lagMs, last] = [0, 0, 0, performance.now()];
const watch = setInterval(() => {
  const now = performance.now();
  lagMs = Math.max(lagMs, now - last - 5);
  last = now;
}, 5);
const work = async (worker) => {
  for (let from = performance.now(); from < end; from = performance.now()) {
    await pair(`p${process.pid}.w${worker}`);
    pairs += 1;
    worstMs = Math.max(worstMs, performance.now() - from);
  }
};
await Promise.all(Array.from({ length: Number(workers) }, (_, worker) => work(worker)));
clearInterval(watch);
await close();
console.log(JSON.stringify({ pairs, worstMs, lagMs }));

async function guardPair(maxBatch) {
  const locks = typeormLocks(new DataSource({ type: 'better-sqlite3', database: file }));
  Object.defineProperty(locks, 'traits', { value: { ...locks.traits, maxBatch } });
  const guard = createGuard({ locks });
  const close = () => guard.close().then(() => locks.close());
  return { pair: (key) => guard.withLock(key, { wait: '30s' }, async () => undefined), close };
}

/** Two bare statements; a busy file is asked again within two milliseconds, which is fairer than SQLite's own wait. */
async function rawPair() {
  const database = new Database(`${file}-raw`, { timeout: 0 });
  const take = database.prepare('INSERT OR IGNORE INTO locks VALUES (?, ?, ?)');
  const give = database.prepare('DELETE FROM locks WHERE name = ? AND owner = ?');
  const patient = async (statement, ...values) => {
    for (;;) {
      try {
        return statement.run(...values);
      } catch (error) {
        if (error.code !== 'SQLITE_BUSY') throw error;
        await sleep(Math.random() * 2);
      }
    }
  };
  let claims = 0;
  const pair = async (key) => {
    const owner = `${process.pid}.${(claims += 1)}`;
    await patient(take, key, owner, Date.now() + 30_000);
    await patient(give, key, owner);
  };
  return { pair, close: async () => void database.close() };
}
