// Verrou on Knex, on whatever database Knex was given: with its default poll of 250 ms, and with a shorter one.
import { peer } from './peers.mjs';

/** Scenarios in which a shorter poll than the default changes much. */
const TUNED = ['contention'];

/** `connect(address, options)` answers a Knex. */
export function verrousOn(connect) {
  const opened = (acquire) => async (address, options) => verrouOn(await connect(address, options), acquire);
  return {
    verrou: { waits: true, holds: true, open: opened() },
    'verrou, poll 10 ms': { waits: true, tuned: TUNED, open: opened({ retry: { delay: 10 } }) },
  };
}

async function verrouOn(connection, acquire) {
  const { Verrou } = await peer('@verrou/core/build/index.js');
  const { knexStore } = await peer('@verrou/core/build/src/drivers/knex.js');
  const verrou = new Verrou({ default: 'knex', stores: { knex: { driver: knexStore({ connection }) } } });
  const pair = async (key, work) => {
    const lock = verrou.createLock(key, '30s');
    await lock.acquire(acquire);
    await work();
    await lock.release();
  };
  const hold = async (key, { ttlMs }) => {
    const lock = verrou.createLock(key, ttlMs);
    await lock.acquire(acquire);
    return { isHeld: () => !lock.isExpired(), release: () => lock.release() };
  };
  return { pair, hold };
}
