/** The contract suites on a cluster of three masters with a replica each. */
import { describeLockBackend, describeRunStore, describeStateStore } from '@guard/testing';
import { startRedisCluster, type RedisCluster } from '@guard/testing/servers';
import { viaIoredis6, viaNodeRedis6 } from '../support/clients.js';
import { endClients, lockSuite, runSuite, stateSuite } from '../support/contract.js';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster({ appendOnly: false });
}, 60_000);
afterAll(() => {
  endClients();
  return cluster.stop();
});

const place = () => ({ cluster });
const ioredis = { name: 'ioredis, cluster', via: viaIoredis6, place };
const nodeRedis = { name: 'node-redis, cluster', via: viaNodeRedis6, place };

describeLockBackend(lockSuite(ioredis));
describeLockBackend(lockSuite(nodeRedis, 'sentences'));
describeStateStore(stateSuite(ioredis, { cluster: true }));
describeStateStore(stateSuite(nodeRedis, { cluster: true, cases: 'sentences' }));
describeRunStore(runSuite(ioredis));
describeRunStore(runSuite(nodeRedis));
