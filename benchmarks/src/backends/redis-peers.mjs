// The libraries on Redis, each with the settings of its own documentation, and as patient as it can be. `hold` is what
// the library has for long work: where it renews by itself, that; where not, the lease ends by its ttl.
import { TTL_MS } from './guard.mjs';
import { peer } from './peers.mjs';
import { connect } from './redis.mjs';

const PATIENT = 100_000;
/** Scenarios in which a shorter poll than the default changes much. */
const TUNED = ['contention'];
/** They do what redlock does; a quick run shows that once where it takes long. */
const SLOW = ['throughput', 'contention', 'hold', 'start'];

export const redisPeers = {
  redlock: { waits: true, holds: true, open: openRedlock() },
  'redlock, poll 10 ms': { waits: true, tuned: TUNED, open: openRedlock({ retryDelay: 10, retryJitter: 5 }) },
  'sesamecare-redlock': {
    waits: true,
    holds: true,
    renews: true,
    slow: [...SLOW, 'expiry'],
    open: openSesamecare,
  },
  'redlock-universal': { waits: true, holds: true, renews: true, slow: SLOW, open: openUniversal },
  'redis-semaphore': { waits: true, holds: true, renews: true, open: openSemaphore },
  verrou: { waits: true, holds: true, open: openVerrou() },
  'verrou, poll 10 ms': { waits: true, tuned: TUNED, open: openVerrou({ retry: { delay: 10 } }) },
  // It looks for a lock whose holder died every ten seconds: in a quick run nobody waits for that.
  'simple-redis-mutex': { waits: true, holds: true, oneServer: true, slow: ['expiry'], open: openSimple() },
  'simple-redis-mutex, poll 100 ms': {
    ...{ waits: true, holds: true, oneServer: true, tuned: ['expiry'] },
    open: openSimple({ pollingInterval: 100 }),
  },
};

function openRedlock(settings = {}) {
  return async (address) => {
    const { default: Redlock } = await peer('redlock/redlock.js');
    const redlock = new Redlock([connect(address)], { retryCount: PATIENT, ...settings });
    redlock.on('clientError', () => undefined);
    const pair = async (key, work) => {
      const lock = await redlock.lock(`redlock:${key}`, TTL_MS);
      await work();
      await lock.unlock();
    };
    const hold = async (key, { ttlMs }) => {
      const lock = await redlock.lock(`redlock:${key}`, ttlMs);
      return untilExpiry(lock, () => lock.unlock());
    };
    return { pair, hold };
  };
}

async function openSesamecare(address) {
  const { Redlock } = await peer('@sesamecare-oss/redlock/build/index.js');
  const redlock = new Redlock([connect(address)], { retryCount: PATIENT, automaticExtensionThreshold: 500 });
  redlock.on('error', () => undefined);
  const pair = async (key, work) => {
    const lock = await redlock.acquire([`sesamecare:${key}`], TTL_MS);
    await work();
    await lock.release();
  };
  const hold = (key, { ttlMs }) => {
    // It is extended this long before its end; the default leaves nothing of a short lease.
    const settings = { automaticExtensionThreshold: Math.min(500, ttlMs / 2) };
    return inside((work) =>
      redlock.using([`sesamecare:${key}`], ttlMs, settings, (signal, { lock }) =>
        work(signal, () => lock.expiration - Date.now()),
      ),
    );
  };
  return { pair, hold };
}

async function openUniversal(address) {
  const { createLock, IoredisAdapter } = await peer('redlock-universal/dist/index.js');
  const adapter = new IoredisAdapter(connect(address));
  const lockOf = (key, ttl) => createLock({ adapter, key: `universal:${key}`, ttl, retryAttempts: PATIENT });
  const pair = async (key, work) => {
    const lock = lockOf(key, TTL_MS);
    const handle = await lock.acquire();
    await work();
    await lock.release(handle);
  };
  const hold = (key, { ttlMs }) => inside((work) => lockOf(key, ttlMs).using((signal) => work(signal)));
  return { pair, hold };
}

async function openSemaphore(address) {
  const { Mutex } = await peer('redis-semaphore/lib/index.js');
  const client = connect(address);
  const mutexOf = (key, options) => new Mutex(client, key, { acquireTimeout: 120_000, ...options });
  const pair = async (key, work) => {
    const mutex = mutexOf(key, { lockTimeout: TTL_MS });
    await mutex.acquire();
    await work();
    await mutex.release();
  };
  const hold = async (key, { ttlMs }) => {
    let onLost = () => undefined;
    const mutex = mutexOf(key, { lockTimeout: ttlMs, onLockLost: () => onLost() });
    await mutex.acquire();
    return {
      isHeld: () => mutex.isAcquired,
      onLost: (listener) => (onLost = listener),
      release: () => mutex.release(),
    };
  };
  return { pair, hold };
}

function openVerrou(acquire) {
  return async (address) => {
    const { Verrou } = await peer('@verrou/core/build/index.js');
    const { redisStore } = await peer('@verrou/core/build/src/drivers/redis.js');
    const driver = redisStore({ connection: connect(address) });
    const verrou = new Verrou({ default: 'redis', stores: { redis: { driver } } });
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
  };
}

function openSimple(settings = {}) {
  return async ({ host, port }) => {
    const { createClient } = await import('redis');
    const simple = await peer('simple-redis-mutex/dist/index.js');
    const client = createClient({ socket: { host, port } }).on('error', () => undefined);
    await client.connect();
    const pair = async (key, work) => {
      const release = await simple.lock(client, `simple:${key}`, { timeout: TTL_MS, ...settings });
      await work(BigInt(release.fencingToken));
      await release();
    };
    const hold = async (key, { ttlMs }) => {
      const release = await simple.lock(client, `simple:${key}`, { timeout: ttlMs, ...settings });
      // It says nothing about the end of the lease: its user holds the lock until the release.
      return { token: BigInt(release.fencingToken), isHeld: () => true, release };
    };
    return { pair, hold };
  };
}

/** Its user can look at the time until which the lock was taken. */
function untilExpiry(lock, release) {
  const left = () => lock.expiration - Date.now();
  return { isHeld: () => left() > 0, deadlineInMs: left, release };
}

/** A lock that exists inside a callback only, as a handle: the callback ends with the release. */
function inside(using) {
  return new Promise((resolve, reject) => {
    let end;
    const released = new Promise((settle) => (end = settle));
    const done = using((signal, deadlineInMs) => {
      resolve({
        isHeld: () => !signal.aborted,
        ...(deadlineInMs === undefined ? {} : { deadlineInMs }),
        onLost: (listener) => signal.addEventListener('abort', listener, { once: true }),
        release: async () => {
          end();
          await done.catch(() => undefined);
        },
      });
      return released;
    });
    done.catch(reject);
  });
}
