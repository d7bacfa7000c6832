/** The contract suites behind Sentinel, with a replica. */
import { describeLockBackend, describeRunStore, describeStateStore } from '@guard/testing';
import { startRedisSentinel, type RedisSentinel } from '@guard/testing/servers';
import { viaIoredis6, viaNodeRedis6 } from '../support/clients.js';
import { endClients, lockSuite, runSuite, stateSuite } from '../support/contract.js';

let sentinel: RedisSentinel;
beforeAll(async () => {
  sentinel = await startRedisSentinel({ appendOnly: false });
}, 60_000);
afterAll(() => {
  endClients();
  return sentinel.stop();
});

const place = () => ({ sentinel });
const ioredis = { name: 'ioredis, Sentinel', via: viaIoredis6, place };
const nodeRedis = { name: 'node-redis, Sentinel', via: viaNodeRedis6, place };

describeLockBackend(lockSuite(ioredis, 'sentences'));
describeLockBackend(lockSuite(nodeRedis, 'sentences'));
describeStateStore(stateSuite(nodeRedis, { cases: 'sentences' }));
describeRunStore(runSuite(ioredis));
