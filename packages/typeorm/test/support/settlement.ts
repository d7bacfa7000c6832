/** The one settlement of a process that may die in it: effect and completion are in one transaction. */
import { createGuard, type Guard } from '@guard/core';
import { completeRun, typeormLocks, typeormRuns } from '@guard/typeorm';
import type { DataSource } from 'typeorm';

/** Settles once; answers the guard that did. `forLocks`: a data source of its own, where the test counts statements. */
export async function settleOnce(dataSource: DataSource, forLocks = dataSource): Promise<Guard> {
  const guard = createGuard({
    locks: typeormLocks(forLocks),
    runs: typeormRuns(dataSource),
    namespace: 'billing',
  });
  await guard.run('settle', { key: '2026-11-29', ttl: '1s', retry: { attempts: 1 } }, async () => {
    await dataSource.transaction(async (manager) => {
      await manager.query("INSERT INTO ledger (what) VALUES ('settled')");
      await completeRun(manager, { settled: 1 });
    });
  });
  return guard;
}
