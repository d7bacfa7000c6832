/**
 * The contracts of the ports, against real files. Two timelines: the real one, and one in the test's hand, on which
 * every moment is exact and no case has to wait.
 */
import { typeormLocks } from '@guard/typeorm';
import { describeLockBackend, VirtualClock, type LockPlace, type TestRunner } from '@guard/testing';
import { newPlace } from './support/place.js';

const runner: TestRunner = { describe, it, skip: it.skip };

async function lockPlace(clock?: VirtualClock): Promise<LockPlace> {
  const place = newPlace();
  const options = clock === undefined ? {} : { clock };
  const open = () => typeormLocks(place.dataSource(), options);
  const [backend, further] = [open(), open()];
  return {
    backend,
    connect: async () => further,
    ...options,
    cleanup: async () => {
      await Promise.all([backend.close(), further.close()]);
      place.remove();
    },
  };
}

const described = newPlace();
afterAll(() => described.remove());
const { traits } = typeormLocks(described.dataSource());

describeLockBackend({
  runner,
  name: 'typeorm on SQLite, virtual time',
  traits,
  create: () => lockPlace(new VirtualClock()),
});

describeLockBackend({ runner, name: 'typeorm on SQLite, real time', traits, create: () => lockPlace() });
