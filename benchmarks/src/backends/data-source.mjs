// Guard through the pool of a TypeORM data source, on whatever server that leads to.
import { guardRunner, lockRunner } from './guard.mjs';

/** How many connections a pool has, Guard's and everybody else's. */
export const CONNECTIONS = 16;

/** `type`: the server as TypeORM names it. */
export function guardOn(type) {
  const connect = async ({ url }, { connections = CONNECTIONS } = {}) => {
    const { DataSource } = await import('typeorm');
    return new DataSource({ type, url, poolSize: connections }).initialize();
  };
  const openLocks = async (address, options) => {
    const { typeormLocks } = await import('@guard/typeorm');
    const source = await connect(address, options);
    return { locks: typeormLocks(source), close: () => source.destroy() };
  };
  const openStores = async (address) => {
    const { typeormLocks, typeormRuns } = await import('@guard/typeorm');
    const source = await connect(address);
    return { locks: typeormLocks(source), runs: typeormRuns(source), close: () => source.destroy() };
  };
  const runners = { guard: guardRunner(openStores), 'guard, lock alone': lockRunner(openLocks) };
  return { connect, openLocks, runners };
}
