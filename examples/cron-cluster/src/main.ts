/**
 * Three processes with one cron expression of every second, for twelve seconds; after five of them one is killed.
 * Then the records are read: each second was run once, or has a reason. Ends with 0 if so, with 1 otherwise.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard, type RunRecord } from '@guard/core';
import { ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import { DataSource } from 'typeorm';

const folder = mkdtempSync(join(tmpdir(), 'cron-cluster-'));
const file = join(folder, 'app.sqlite');
const started: ChildProcess[] = [];
process.once('exit', () => {
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));

const db = await new DataSource({ type: 'better-sqlite3', database: file }).initialize();
await ensureSchema(db);

const [first, ...others] = await Promise.all(['node-1', 'node-2', 'node-3'].map(start));
await sleep(5_000);
console.log('node-1 is killed');
first!.kill('SIGKILL');
await sleep(7_000);
await Promise.all(others.map(end));

const problems = judge(await records());
for (const problem of problems) console.log(problem);
console.log(problems.length === 0 ? 'Each second ran once.' : 'FAILED.');
await db.destroy();
process.exitCode = problems.length === 0 ? 0 : 1;

async function start(label: string): Promise<ChildProcess> {
  const child = fork(new URL('worker.js', import.meta.url), [file, label]);
  started.push(child);
  await once(child, 'message');
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** The records, oldest first. */
async function records(): Promise<readonly RunRecord[]> {
  const locks = typeormLocks(db);
  const guard = createGuard({ locks, runs: typeormRuns(db) });
  const { runs } = await guard.runs.list({ task: 'report', limit: 100 });
  await guard.close();
  await locks.close();
  return runs.map(({ run }) => run).sort((a, b) => (a.scheduledForMs ?? 0) - (b.scheduledForMs ?? 0));
}

/** What is wrong. What the nodes had begun when they were told to end is left for those that start next. */
function judge(runs: readonly RunRecord[]): string[] {
  const found: string[] = [];
  const ran = runs.filter(({ state }) => state === 'completed');
  if (ran.length < 8) found.push(`only ${ran.length} seconds were run`);
  for (const [place, { key, scheduledForMs = 0 }] of ran.entries()) {
    const before = ran[place - 1]?.scheduledForMs;
    if (before !== undefined && scheduledForMs - before !== 1_000)
      found.push(`nothing ran between ${new Date(before).toISOString()} and ${key}`);
  }
  const perNode = new Map<string, number>();
  for (const run of ran)
    if (run.state === 'completed') perNode.set(run.node.label, (perNode.get(run.node.label) ?? 0) + 1);
  for (const [label, count] of [...perNode].sort()) console.log(`${label}: ${count} runs`);
  const takeovers = ran.filter((run) => run.takeovers > 0).length;
  if (takeovers > 0) console.log(`${takeovers} of them went on on another node`);
  return found;
}
