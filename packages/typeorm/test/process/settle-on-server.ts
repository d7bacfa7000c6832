/**
 * One settlement on a database server whose effect and completion are in one transaction. Dies at the n-th statement of
 * that transaction: before it, once it is on its way, or after its answer, as the test says.
 */
import { createGuard } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { completeRun, typeormLocks, typeormRuns } from '@guard/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';

/** When it dies. */
export type Moment = 'before' | 'under way' | 'after';

interface Client {
  query(...all: unknown[]): unknown;
}

interface Input {
  readonly options: DataSourceOptions;
  readonly dieAt?: number;
  readonly when?: Moment;
}

const main: WorkerMain<Input> = async ({ input, tell }) => {
  const { options, dieAt, when } = input;
  const statements: string[] = [];
  let inside: Client | undefined;

  function die(moment: Moment, at: number): void {
    if (at === dieAt && when === moment) process.kill(process.pid, 'SIGKILL');
  }

  /** Looks at the statements of the client that the transaction is on, from its first to its end. */
  function watch(client: Client): void {
    const query = client.query.bind(client);
    client.query = (...all: unknown[]): unknown => {
      const [first] = all;
      const text = typeof first === 'string' ? first : String((first as { text?: unknown }).text);
      if (text === 'START TRANSACTION') inside = client;
      if (inside !== client) return query(...all);
      const at = statements.push(text);
      die('before', at);
      const answer = query(...all) as Promise<unknown>;
      // The driver hands a message to the system at once; one turn later it has left this process for good.
      setImmediate(() => setImmediate(() => die('under way', at)));
      return answer.then((result) => {
        die('after', at);
        if (text === 'COMMIT') inside = undefined;
        return result;
      });
    };
  }

  const dataSource = await new DataSource(options).initialize();
  const { master } = dataSource.driver as unknown as {
    master: { on(event: 'connect', seen: (client: Client) => void): void };
  };
  master.on('connect', watch);
  // The client that the pool had before it was watched, if there is one, is not used: it is taken until the end.
  const [, giveBack] = await (
    dataSource.driver as unknown as { obtainMasterConnection(): Promise<[unknown, () => void]> }
  ).obtainMasterConnection();
  const guard = createGuard({
    locks: typeormLocks(dataSource),
    runs: typeormRuns(dataSource),
    namespace: 'billing',
  });

  await guard.run('settle', { key: '2026-11-29', ttl: '1s', retry: { attempts: 1 } }, async () => {
    await dataSource.transaction(async (manager) => {
      await manager.query("INSERT INTO ledger (what) VALUES ('settled')");
      await completeRun(manager, { settled: 1 });
    });
  });
  await tell({ statements });
  giveBack();
  await guard.close();
  await dataSource.destroy();
};
export default main;
