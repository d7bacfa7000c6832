// On one etcd node: Guard, the bare transaction with a delete under one shared lease, the lock of etcd3, and the program
// `etcdctl lock`. Each has a client of its own, as a process has.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { guardContender, guardRunner, lockRunner, TTL_MS } from './guard.mjs';

export const etcd = {
  name: 'etcd',
  minTtlMs: 2_000,
  /** A lease is a second longer than the ttl, and etcd looks for ended ones every half second. */
  slackMs: 2_600,
  hasServer: true,
  /** A write waits for the disk: a short round would see too few hand-overs. */
  handoverFactor: 2,
  hasLeader: true,
  /** It keeps the names of deleted keys until a compaction: does a lock grow slower with its claims? */
  remembers: 1_000,
  startServer,
};

export const contenders = {
  guard: guardContender(openLocks),
  raw: { waits: false, open: openRaw },
  etcd3: { waits: true, holds: true, renews: true, mostLocks: 1_000, open: openEtcd3({ retryMs: 100 }) },
  'etcd3, retry 10 ms': { waits: true, tuned: ['contention'], open: openEtcd3({ retryMs: 10 }) },
  etcdctl: { waits: true, most: 16, open: openEtcdctl },
};

export const runners = {
  guard: guardRunner(async (address) => {
    const { kvRuns } = await import('@guard/core');
    const { etcdLocks, etcdState } = await import('@guard/etcd');
    const client = await connect(address);
    return { locks: etcdLocks(client), runs: kvRuns(etcdState(client)), close: async () => client.close() };
  }),
  'guard, lock alone': lockRunner(openLocks),
};

async function openLocks(address) {
  const { etcdLocks } = await import('@guard/etcd');
  const client = await connect(address);
  return { locks: etcdLocks(client), close: async () => client.close() };
}

async function connect({ urls }) {
  const { Etcd3 } = await import('etcd3');
  return new Etcd3({ hosts: [...urls] });
}

async function startServer({ nodes = 1 } = {}) {
  const { startEtcd } = await import('@guard/testing/servers');
  const group = await startEtcd({ nodes });
  const [first] = group.nodes;
  const address = { urls: [...group.urls] };
  return {
    address,
    control: group,
    version: group.version,
    pids: () => group.nodes.map(({ pid }) => pid),
    endpoint: { host: first.host, port: first.port },
    through: (port) => ({ urls: [`http://127.0.0.1:${port}`] }),
    changeLeader: () => changeLeader(group),
    startCount: async () => {
      const before = await counted(group.urls);
      return async () => {
        const after = await counted(group.urls);
        return { operations: after.operations - before.operations, pushes: after.pushes - before.pushes };
      };
    },
    floorMs: () => watchFloor(address),
    close: () => group.stop(),
  };
}

/** Requests that the servers began, messages on the streams of keep-alives, and messages of watches to clients. */
async function counted(urls) {
  const total = { operations: 0, pushes: 0 };
  for (const url of urls) {
    const text = await (await fetch(`${url}/metrics`)).text();
    const sum = (name, matches) =>
      [...text.matchAll(new RegExp(`^${name}\\{([^}]*)\\} (\\S+)`, 'gm'))]
        .filter(([, labels]) => matches(labels))
        .reduce((all, [, , value]) => all + Number(value), 0);
    total.operations += sum('grpc_server_started_total', (labels) => /grpc_type="unary"/.test(labels));
    total.operations += sum('grpc_server_msg_received_total', (labels) => /LeaseKeepAlive/.test(labels));
    total.pushes += sum('grpc_server_msg_sent_total', (labels) => /grpc_method="Watch"/.test(labels));
  }
  return total;
}

/** The leader dies and comes back; the others choose a new one meanwhile. */
async function changeLeader(group) {
  const leader = await group.leader();
  await leader.kill();
  await group.leader();
  await leader.restart({ keepData: true });
}

async function openRaw(address) {
  const client = await connect(address);
  const { ID } = await client.leaseClient.leaseGrant({ TTL: 3_600 });
  const pair = async (key, work) => {
    const name = Buffer.from(`raw/${key}`);
    const { succeeded } = await client.kv.txn({
      compare: [{ key: name, target: 'Create', result: 'Equal', create_revision: '0' }],
      success: [{ request_put: { key: name, value: Buffer.from('me'), lease: ID } }],
    });
    if (!succeeded) throw new Error(`${key} is taken`);
    await work();
    await client.kv.deleteRange({ key: name });
  };
  return { pair };
}

/** Its lock never waits: whoever finds it taken asks again after a while. It tells nobody that it is lost. */
function openEtcd3({ retryMs }) {
  return async (address) => {
    const { EtcdLockFailedError } = await import('etcd3');
    const client = await connect(address);
    const acquire = async (key, ttlMs) => {
      for (;;) {
        try {
          const lock = client.lock(`etcd3/${key}`).ttl(Math.ceil(ttlMs / 1_000));
          return await lock.acquire();
        } catch (error) {
          if (!(error instanceof EtcdLockFailedError)) throw error;
          await pause(retryMs);
        }
      }
    };
    const pair = async (key, work) => {
      const lock = await acquire(key, TTL_MS);
      await work();
      await lock.release();
    };
    const hold = async (key, { ttlMs }) => {
      const lock = await acquire(key, ttlMs);
      return { isHeld: () => true, release: () => lock.release() };
    };
    return { pair, hold };
  };
}

/** A process for each lock: it prints its key when it has the lock, and lets go when it is asked to end. */
async function openEtcdctl({ urls }) {
  const pair = async (key, work) => {
    const args = [`--endpoints=${urls.join(',')}`, 'lock', '--ttl=30', `etcdctl/${key}`];
    const child = spawn('etcdctl', args, {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, ETCDCTL_API: '3' },
    });
    const ended = once(child, 'exit');
    await Promise.race([
      once(child.stdout, 'data'),
      ended.then(() => Promise.reject(new Error('etcdctl ended before it had the lock'))),
    ]);
    await work();
    child.kill('SIGINT');
    await ended;
  };
  return { pair };
}

/** How long a put takes to arrive at a watch after two idle milliseconds. */
async function watchFloor(address) {
  const [from, to] = [await connect(address), await connect(address)];
  const watch = await to.watch().key('floor').create();
  const times = [];
  for (let n = 0; n < 40; n += 1) {
    await pause(2);
    const sentAt = performance.now();
    const heard = new Promise((resolve) => watch.once('put', resolve));
    await Promise.all([from.put('floor').value(String(n)), heard]);
    times.push(performance.now() - sentAt);
  }
  from.close();
  to.close();
  return times.sort((a, b) => a - b)[times.length >> 1];
}
