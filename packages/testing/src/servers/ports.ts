/**
 * Free loopback ports. They are drawn below the range from which the system gives ports to outgoing connections: a
 * server that is killed and started again must find its port free, also while its clients try to reconnect.
 */
import { createServer } from 'node:net';
import { GuardError, systemRandom } from '@guard/core';

/** The address of everything that is started here. */
export const LOOPBACK = '127.0.0.1';

const FIRST = 10_000;
const LAST = 31_999;
const TRIES = 200;

/** Ports that this process has given out; a server that is down keeps its own. */
const given = new Set<number>();

/** A port that is free now. `alsoFree` names ports that have to be free with it. */
export async function freePort(alsoFree: (port: number) => readonly number[] = () => []): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const port = FIRST + Math.floor(systemRandom.fraction() * (LAST - FIRST + 1));
    const wanted = [port, ...alsoFree(port)];
    if (wanted.some((each) => each > LAST || given.has(each))) continue;
    const free = await Promise.all(wanted.map(isFree));
    if (!free.every(Boolean)) continue;
    for (const each of wanted) given.add(each);
    return port;
  }
  throw new GuardError('unavailable', `no free port on ${LOOPBACK} from ${FIRST} to ${LAST}`);
}

/** Gives ports back. */
export function freed(ports: readonly number[]): void {
  for (const port of ports) given.delete(port);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, LOOPBACK, () => probe.close(() => resolve(true)));
  });
}
