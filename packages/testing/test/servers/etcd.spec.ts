import { Etcd3 } from 'etcd3';
import { until } from '@guard/testing';
import { startEtcd, type EtcdGroup } from '@guard/testing/servers';
import { describeServer } from './support/describe-server.js';

describe.each([1, 3] as const)('with %d nodes', (count) => {
  describeServer('etcd', {
    start: () => startEtcd({ nodes: count }),
    nodes: ({ nodes }) => nodes,
    write: async (etcd, text) => {
      await withClient(etcd, (client) => client.put('k').value(text));
    },
    read: (etcd) => withClient(etcd, (client) => client.get('k').string()),
  });
});

describe('etcd with three nodes', () => {
  it('elects another leader when its leader is stopped', async () => {
    await using etcd = await startEtcd({ nodes: 3 });
    const leader = await etcd.leader();
    await leader.pause();
    await until('another leader', async () => (await etcd.leader()) !== leader);
    await leader.resume();
  });
});

async function withClient<T>({ urls }: EtcdGroup, work: (client: Etcd3) => PromiseLike<T>): Promise<T> {
  const client = new Etcd3({ hosts: [...urls] });
  try {
    return await work(client);
  } finally {
    client.close();
  }
}
