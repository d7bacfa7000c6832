/**
 * Three replicas of the service by one command. With `--serve` they stay; without, a scene is played: the same order is
 * charged on all of them at once, one dies in the middle of a charge, money is moved on all of them, and at the end the
 * books are read. Ends with 0 if every order was charged once, every charge settled once, and no cent is lost.
 */
import 'reflect-metadata';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { Receipt } from './billing.js';

const folder = mkdtempSync(join(tmpdir(), 'nest-billing-'));
process.env['BILLING_FILE'] ??= join(folder, 'billing.sqlite');
process.env['SETTLE_CRON'] ??= '*/2 * * * * *';
const { databaseOptions, redis } = await import('./backends.js');
const { Account, Charge, Settlement } = await import('./entities.js');

const replicas: ChildProcess[] = [];
process.once('exit', () => {
  for (const child of replicas) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));

const books = await new DataSource(databaseOptions(true) as DataSourceOptions).initialize();
await books.getRepository(Account).save(['ada', 'grace'].map((id) => ({ id, cents: 1_000 })));
const urls = await Promise.all(['replica-1', 'replica-2', 'replica-3'].map(start));

if (process.argv.includes('--serve')) {
  console.log(urls.join('\n'));
  await new Promise(() => undefined);
}

const everywhere = (path: string, body: object): Promise<unknown[]> =>
  Promise.all(urls.map((url) => post(`${url}/${path}`, body)));

const receipts = (await everywhere('charge', { id: 'order-1', cents: 500 })) as Receipt[];
console.log(
  `order-1 was asked for ${receipts.length} times: ${new Set(receipts.map(({ charge }) => charge)).size} charge`,
);
await everywhere('transfer', { from: 'ada', to: 'grace', cents: 100 });

const order = { id: 'order-2', cents: 700, bankMs: 2_000 };
const lost = post(`${urls[0]}/charge`, order).catch(() => 'no answer');
await sleep(1_000);
console.log('replica-1 is killed');
replicas[0]!.kill('SIGKILL');
console.log(`replica-1 gave ${String(await lost)}`);
const receipt = (await post(`${urls[1]}/charge`, order)) as Receipt;
console.log(`order-2 was charged by ${receipt.node}`);
await sleep(5_000);
await Promise.all(replicas.slice(1).map(end));

const problems = await judge();
for (const problem of problems) console.log(problem);
console.log(problems.length === 0 ? 'The books are right.' : 'FAILED.');
await books.destroy();
redis?.disconnect();
process.exitCode = problems.length === 0 ? 0 : 1;

async function start(label: string): Promise<string> {
  const child = fork(new URL('worker.js', import.meta.url), { env: { ...process.env, REPLICA: label } });
  replicas.push(child);
  const [url] = (await once(child, 'message')) as [string];
  return url;
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

async function post(url: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return text === '' ? undefined : (JSON.parse(text) as unknown);
}

async function judge(): Promise<string[]> {
  const [charges, settlements, accounts] = await Promise.all([
    books.manager.find(Charge),
    books.manager.find(Settlement),
    books.manager.find(Account),
  ]);
  const instants = settlements.map(({ instant }) => instant);
  const paid = settlements.reduce((sum, { cents }) => sum + cents, 0);
  const balances = accounts
    .map(({ id, cents }) => `${id} ${cents}`)
    .sort()
    .join(', ');
  console.log(`${instants.length} settlements of ${paid} cents in all; ${balances}`);
  return [
    ...(charges.length === 2 ? [] : [`2 orders were charged ${charges.length} times`]),
    ...(new Set(instants).size === instants.length ? [] : ['an instant was settled twice']),
    ...(instants.length >= 3 ? [] : ['hardly anything was settled']),
    ...(paid === 1_200 ? [] : [`1200 cents were charged, and ${paid} settled`]),
    ...(balances === 'ada 700, grace 1300' ? [] : ['money was made, or lost']),
  ];
}
