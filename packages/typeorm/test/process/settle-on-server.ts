/**
 * One settlement on a database server whose effect and completion are in one transaction. Dies at the n-th statement of
 * that transaction: before it, once it is on its way, or after its answer, as the test says.
 */
import type { WorkerMain } from '@guard/testing';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { settleOnce } from '../support/settlement.js';

/** When it dies. */
export type Moment = 'before' | 'under way' | 'after';

/** A connection of `pg`, which answers by a promise, or of mysql2, which calls back. */
interface Client {
  query(...all: unknown[]): unknown;
}

interface Pool {
  on(event: string, seen: (client: Client) => void): void;
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
      const answered = (): void => {
        die('after', at);
        if (text === 'COMMIT') inside = undefined;
      };
      die('before', at);
      const answer = query(...all.map((one) => (typeof one === 'function' ? calling(one, answered) : one)));
      // The driver hands a message to the system at once; one turn later it has left this process for good.
      setImmediate(() => setImmediate(() => die('under way', at)));
      if (!(answer instanceof Promise)) return answer;
      return answer.then((result: unknown) => {
        answered();
        return result;
      });
    };
  }

  const dataSource = await new DataSource(options).initialize();
  const driver = dataSource.driver as unknown as {
    readonly master?: Pool;
    readonly pool?: Pool;
    obtainMasterConnection(): Promise<unknown>;
  };
  driver.master?.on('connect', watch);
  driver.pool?.on('connection', watch);
  // The client that the pool had before it was watched, if there is one, is not used: it is taken until the end.
  const giveBack = releaseOf(await driver.obtainMasterConnection());
  const guard = await settleOnce(dataSource);
  await tell({ statements });
  giveBack();
  await guard.close();
  await dataSource.destroy();
};

/** A function that is called back, after something else. */
function calling(done: unknown, first: () => void): (...all: unknown[]) => unknown {
  return (...all) => {
    first();
    return (done as (...all: unknown[]) => unknown)(...all);
  };
}

/** How a connection is given back: `pg` says so beside it, mysql2 on it. */
function releaseOf(taken: unknown): () => void {
  if (Array.isArray(taken)) return taken[1] as () => void;
  return () => (taken as { release(): void }).release();
}

export default main;
