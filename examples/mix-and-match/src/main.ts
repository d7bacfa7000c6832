/**
 * Locks on one backend, runs in another. Locks: Redis by `REDIS_URL`, else in memory, which is enough for one process.
 * Runs: Postgres by `POSTGRES_URL`, else embedded SQLite, beside the application's own table. Ends with 0 if two nodes
 * that asked for the same invoices booked each once, and the database refused a holder that is no longer the newest.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGuard, type Guard, GuardError, type Lock, memoryLocks } from '@guard/core';
import { redisLocks } from '@guard/redis';
import { fromIoredis } from '@guard/redis/ioredis';
import { assertFence, completeRun, ensureSchema, typeormRuns } from '@guard/typeorm';
import { Redis } from 'ioredis';
import { DataSource } from 'typeorm';

const { POSTGRES_URL, REDIS_URL } = process.env;
const MONTHS = ['october', 'november', 'december'];
// Databases outlive this program, and a key that has completed never runs again: each call of it has keys of its own.
const call = new Date().toISOString();

const folder = mkdtempSync(join(tmpdir(), 'mix-and-match-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const db = await new DataSource(
  POSTGRES_URL === undefined
    ? { type: 'better-sqlite3', database: join(folder, 'app.sqlite'), enableWAL: true }
    : { type: 'postgres', url: POSTGRES_URL },
).initialize();
await ensureSchema(db);
await db.query('CREATE TABLE IF NOT EXISTS invoice (book varchar(40), month varchar(20), node varchar(20))');

const redis = REDIS_URL === undefined ? undefined : new Redis(REDIS_URL);
const locks = redis === undefined ? memoryLocks() : redisLocks(fromIoredis(redis));
const nodes = ['node-1', 'node-2'].map((label) => ({
  label,
  guard: createGuard({ locks, runs: typeormRuns(db), namespace: 'mix-and-match', node: { label } }),
}));
console.log(`locks: ${redis === undefined ? 'memory' : 'Redis'}, runs: ${db.options.type}`);

for (const month of MONTHS) await Promise.all(nodes.map((node) => invoice(node, month)));
const refusal = await withOlderToken(nodes[0]!.guard);
const isRight = refusal === 'stale-token' && (await countInvoices()) === MONTHS.length;
console.log(isRight ? 'Each invoice was booked once.' : 'FAILED.');

for (const { guard } of nodes) await guard.close();
await locks.close();
redis?.disconnect();
await db.destroy();
process.exitCode = isRight ? 0 : 1;

/** The lock keeps the other node out; the record says that it is done; the booking and that record are one commit. */
async function invoice({ label, guard }: (typeof nodes)[number], month: string): Promise<void> {
  const outcome = await guard.run('invoice', { key: [call, month] }, () =>
    db.transaction(async (manager) => {
      await manager.query(`INSERT INTO invoice VALUES ('${call}', '${month}', '${label}')`);
      await completeRun(manager);
    }),
  );
  const what = outcome.status === 'completed' ? 'booked' : `skipped (${outcome.reason})`;
  console.log(`${label}  ${month}: ${what}`);
}

/** Somebody held the lock, was slow, and writes when the next one has already written. */
async function withOlderToken(guard: Guard): Promise<string> {
  const older = await guard.acquire(['books', call]);
  await older.release();
  const newer = await guard.acquire(['books', call]);
  await close(newer);
  await newer.release();
  try {
    await close(older);
    return 'it was accepted';
  } catch (error) {
    if (!GuardError.is(error)) throw error;
    console.log(`token ${older.token} after ${newer.token}: ${error.code}`);
    return error.code;
  }
}

/** The tokens come from the backend of the locks; which of them was the newest is kept in the database. */
async function close(lock: Lock): Promise<void> {
  await db.transaction((manager) => assertFence(manager, lock));
}

async function countInvoices(): Promise<number> {
  const rows: unknown = await db.query(`SELECT month FROM invoice WHERE book = '${call}'`);
  return (rows as readonly unknown[]).length;
}
