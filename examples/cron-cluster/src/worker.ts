/**
 * One of three replicas. All of them run this same program: the schedule is written once, in code, and whichever node
 * comes first runs each second. Ends when it is told to (SIGTERM), or when its parent is gone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard } from '@guard/core';
import { typeormLocks, typeormRuns } from '@guard/typeorm';
import { DataSource } from 'typeorm';

const [file = '', label = ''] = process.argv.slice(2);
const say = (text: string): void => console.log(`${label}  ${text}`);

const db = await new DataSource({ type: 'better-sqlite3', database: file }).initialize();
const locks = typeormLocks(db);
const guard = createGuard({
  locks,
  runs: typeormRuns(db),
  node: { label },
  // Short, so that a takeover can be watched.
  defaults: { ttl: '2s' },
  sweepInterval: '1s',
});

// Up to twenty missed seconds are made up for, and one that is due while another runs waits for it.
guard.task('report', { cron: '* * * * * *', catchUp: { all: { max: 20 } }, wait: '10s' }, async (run) => {
  await sleep(300, undefined, { signal: run.signal });
  say(`ran ${run.key} (${run.trigger})`);
});
await guard.start();
process.send?.('ready');

async function end(): Promise<void> {
  await guard.close();
  await locks.close();
  await db.destroy();
  process.disconnect?.();
}
process.once('SIGTERM', () => void end());
process.once('disconnect', () => process.exit());
