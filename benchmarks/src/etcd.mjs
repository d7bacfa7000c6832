// On one etcd node: Guard, the bare transaction with a delete under one shared lease, and the lock of etcd3. Each has a
// client of its own, as a process has.
import { Etcd3 } from 'etcd3';
import { createGuard } from '@guard/core';
import { etcdLocks } from '@guard/etcd';
import { startEtcd } from '@guard/testing/servers';

const TTL_S = 30;

export async function etcdContenders() {
  const server = await startEtcd();
  const clients = [];
  const connect = () => {
    const client = new Etcd3({ hosts: [...server.urls] });
    clients.push(client);
    return client;
  };
  const locks = etcdLocks(connect());
  const guard = createGuard({ locks, namespace: 'bench' });
  return {
    contenders: {
      guard: {
        waits: true,
        pair: (key, work) =>
          guard.withLock(key, { ttl: `${TTL_S}s`, wait: '60s' }, (lock) => work(lock.token)),
      },
      raw: await rawPair(connect()),
      etcd3: etcd3Pair(connect()),
    },
    close: async () => {
      await guard.close();
      await locks.close();
      for (const client of clients) client.close();
      await server.stop();
    },
  };
}

async function rawPair(client) {
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
  return { waits: false, pair };
}

function etcd3Pair(client) {
  const pair = async (key, work) => {
    const lock = await client.lock(`etcd3/${key}`).ttl(TTL_S).acquire();
    await work();
    await lock.release();
  };
  return { waits: false, pair };
}
