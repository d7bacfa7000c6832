/**
 * Two replicas of a plain service on TypeORM: Postgres by `POSTGRES_URL`, else embedded SQLite in a file that ends with
 * this program. Ends with 0 if no payment was lost, and the fee was taken once.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bindGuard, createGuard } from '@guard/core';
import { ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import { DataSource } from 'typeorm';
import { Accounts, balances, FEE_CENTS, PAYMENT_CENTS } from './accounts.js';

const ACCOUNT = 'ada';
const PAYMENTS = 10;
const { POSTGRES_URL } = process.env;
// A database outlives this program, and a key that has completed never runs again: each call of it has books of its own.
const call = new Date().toISOString();

const folder = mkdtempSync(join(tmpdir(), 'typeorm-service-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

// What migrations do in an application, before its replicas start: Guard's tables and the application's own.
const deployment = await openDatabase();
await ensureSchema(deployment);
await deployment.synchronize();
await deployment.destroy();
console.log(`database: ${deployment.options.type}`);

const replicas = await Promise.all(['replica-1', 'replica-2'].map(openReplica));
await Promise.all(replicas.map(work));
const balance = await replicas[0]!.accounts.balance(ACCOUNT);
console.log(`balance: ${balance}`);
const isRight = balance === replicas.length * PAYMENTS * PAYMENT_CENTS - FEE_CENTS;
console.log(isRight ? 'No payment was lost, and the fee was taken once.' : 'FAILED.');

for (const { close } of replicas) await close();
process.exitCode = isRight ? 0 : 1;

function openDatabase(): Promise<DataSource> {
  const entities = [balances];
  return new DataSource(
    POSTGRES_URL === undefined
      ? { type: 'better-sqlite3', database: join(folder, 'app.sqlite'), enableWAL: true, entities }
      : { type: 'postgres', url: POSTGRES_URL, entities },
  ).initialize();
}

/** What a replica has: a data source, a guard on it, and the service that it guards. */
async function openReplica(label: string) {
  const db = await openDatabase();
  const locks = typeormLocks(db);
  const runs = typeormRuns(db);
  const guard = createGuard({
    ...{ locks, runs, namespace: 'typeorm-service' },
    node: { label },
    defaults: { wait: '30s' },
  });
  const accounts = new Accounts(db, (text) => console.log(`${label}  ${text}`), call);
  bindGuard(accounts, guard);
  // The guard first, what it stands on next, the data source last.
  const close = async (): Promise<void> => {
    await guard.close();
    await Promise.all([locks.close(), runs.close()]);
    await db.destroy();
  };
  return { label, accounts, close };
}

async function work({ label, accounts }: Awaited<ReturnType<typeof openReplica>>): Promise<void> {
  await accounts.settle(ACCOUNT, call);
  for (let payment = 0; payment < PAYMENTS; payment += 1) await accounts.payIn(ACCOUNT);
  console.log(`${label}  paid in ${PAYMENTS} times`);
}
