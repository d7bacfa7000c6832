// Verrou on Knex, on whatever database Knex was given.
import { peer } from './peers.mjs';

export async function verrouOn(connection) {
  const { Verrou } = await peer('@verrou/core/build/index.js');
  const { knexStore } = await peer('@verrou/core/build/src/drivers/knex.js');
  const verrou = new Verrou({ default: 'knex', stores: { knex: { driver: knexStore({ connection }) } } });
  const pair = (key, work) => verrou.createLock(key, '30s').run(() => work());
  const hold = async (key, { ttlMs }) => {
    const lock = verrou.createLock(key, ttlMs);
    await lock.acquire();
    return { isHeld: () => !lock.isExpired(), release: () => lock.release() };
  };
  return { pair, hold };
}
