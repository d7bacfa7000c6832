/**
 * Two replicas of a plain service on etcd: `ETCD_URLS`, else one that is started for this program and ended with it. Ends
 * with 0 if no payment was lost, the fee was taken once, and the last balance was heard of.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { bindGuard, createGuard, kvRuns } from '@guard/core';
import { etcdLocks, etcdState } from '@guard/etcd';
import { startEtcd } from '@guard/testing/servers';
import { Etcd3 } from 'etcd3';
import { Accounts, FEE_CENTS, PAYMENT_CENTS } from './accounts.js';

const ACCOUNT = 'ada';
const PAYMENTS = 10;
const { ETCD_URLS } = process.env;
// State outlives this program, and a key that has completed never runs again: each call of it has books of its own.
const call = new Date().toISOString();

const server = ETCD_URLS === undefined ? await startEtcd() : undefined;
const hosts = [...(server?.urls ?? ETCD_URLS!.split(','))];
const origin = server === undefined ? 'yours' : 'started for this example';
console.log(`etcd: ${hosts.length} ${hosts.length === 1 ? 'node' : 'nodes'}, ${origin}`);

const replicas = ['replica-1', 'replica-2'].map(openReplica);
const [first] = replicas;
let heard: number | undefined;
await using _watch = await first!.accounts.watch(ACCOUNT, (cents) => (heard = cents));

await Promise.all(replicas.map(work));
const balance = await first!.accounts.balance(ACCOUNT);
for (let tries = 0; heard !== balance && tries < 50; tries += 1) await sleep(100);
console.log(`balance: ${balance}, ${heard === balance ? 'as' : 'not as'} the watch said`);
const isRight = heard === balance && balance === replicas.length * PAYMENTS * PAYMENT_CENTS - FEE_CENTS;
console.log(isRight ? 'No payment was lost, and the fee was taken once.' : 'FAILED.');

for (const { close } of replicas) await close();
await server?.stop();
process.exitCode = isRight ? 0 : 1;

/** What a replica has: a client of etcd, a guard on it, and the service that it guards. */
function openReplica(label: string) {
  const client = new Etcd3({ hosts });
  const locks = etcdLocks(client);
  const state = etcdState(client);
  const guard = createGuard({
    ...{ locks, state, runs: kvRuns(state), namespace: 'etcd-service' },
    node: { label },
    defaults: { wait: '30s' },
  });
  const accounts = new Accounts(guard, (text) => console.log(`${label}  ${text}`), call);
  bindGuard(accounts, guard);
  // The guard first, what it stands on next, the client last.
  const close = async (): Promise<void> => {
    await guard.close();
    await Promise.all([locks.close(), state.close()]);
    client.close();
  };
  return { label, accounts, close };
}

async function work({ label, accounts }: ReturnType<typeof openReplica>): Promise<void> {
  await accounts.settle(ACCOUNT, call);
  for (let payment = 0; payment < PAYMENTS; payment += 1) await accounts.payIn(ACCOUNT);
  console.log(`${label}  paid in ${PAYMENTS} times`);
}
