/**
 * One settlement whose effect and completion are in one transaction. Dies at the n-th statement of that transaction,
 * before or after it, as the test says.
 */
import type { WorkerMain } from '@guard/testing';
import { hookedDriver } from '../support/drivers.js';
import { dataSourceOn } from '../support/place.js';
import { settleOnce } from '../support/settlement.js';

interface Input {
  readonly file: string;
  readonly dieAt?: number;
  readonly when?: 'before' | 'after';
}

const main: WorkerMain<Input> = async ({ input, tell }) => {
  const { file, dieAt, when } = input;

  let inside = false;
  const statements: string[] = [];

  /** Counts the statements from the first of the transaction to its end, and dies where it should. */
  function reach(statement: string, moment: 'before' | 'after'): void {
    if (statement === 'BEGIN TRANSACTION') inside = true;
    if (!inside) return;
    if (moment === 'before') statements.push(statement);
    if (statements.length === dieAt && when === moment) process.kill(process.pid, 'SIGKILL');
    if (statement === 'COMMIT' && moment === 'after') inside = false;
  }

  const driver = hookedDriver(
    (statement) => reach(statement, 'before'),
    (statement) => reach(statement, 'after'),
  );
  const dataSource = await dataSourceOn(file, { driver }).initialize();
  const guard = await settleOnce(dataSource, dataSourceOn(file));
  await tell({ statements });
  await guard.close();
  await dataSource.destroy();
};
export default main;
