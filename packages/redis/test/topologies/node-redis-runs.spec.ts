/** The contract of run stores through a client of node-redis, on one server. */
import { describeRunStore } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { viaNodeRedis6 } from '../support/clients.js';
import { endClients, runSuite } from '../support/contract.js';

let server: TestServer;
beforeAll(async () => {
  server = await startRedis({ appendOnly: false });
}, 60_000);
afterAll(() => {
  endClients();
  return server.stop();
});

describeRunStore(
  runSuite({ name: 'node-redis, one server', via: viaNodeRedis6, place: () => ({ single: server }) }),
);
