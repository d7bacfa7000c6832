/** The contract suites on a single Redis, through the newest version of both client libraries. */
import { describeLockBackend, describeRunStore, describeStateStore } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { viaIoredis6, viaNodeRedis6 } from './support/clients.js';
import { endClients, lockSuite, runSuite, stateSuite } from './support/contract.js';

let server: TestServer;
beforeAll(async () => {
  server = await startRedis({ appendOnly: false });
}, 60_000);
afterAll(() => {
  endClients();
  return server.stop();
});

const place = () => ({ single: server });
const ioredis = { name: 'ioredis, one server', via: viaIoredis6, place };
const nodeRedis = { name: 'node-redis, one server', via: viaNodeRedis6, place };

describeLockBackend(lockSuite(ioredis));
describeLockBackend(lockSuite(nodeRedis, 'sentences'));
describeStateStore(stateSuite(ioredis));
describeStateStore(stateSuite(nodeRedis, { cases: 'sentences' }));
describeRunStore(runSuite(ioredis));
