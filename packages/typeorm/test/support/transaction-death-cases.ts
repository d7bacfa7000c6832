/** A process that is killed at every statement of a transaction with an effect and the completion of its run. */
import { until, type WorkerProcess } from '@guard/testing';
import { completeRun } from '@guard/typeorm';
import type { TransactionStage } from './transaction-stage.js';

/** What differs between databases. */
export interface DeathParts {
  /** How the statements of a settlement begin, from the first of its transaction to the last. */
  readonly statements: readonly string[];
  readonly settling: (more: object) => WorkerProcess;
  /** Counts open transactions of other sessions, `open`, where a server has to notice that a process is gone. */
  readonly openTransactions?: string;
}

/** Cases for one database. */
export function describeDeaths(database: string, stage: TransactionStage, parts: DeathParts): void {
  const { dataSource, locked, settle, ledger } = stage;
  const { statements, settling, openTransactions } = parts;
  const deaths = statements.flatMap((statement, index) =>
    (['before', 'after'] as const).map((when) => ({ when, statement, dieAt: index + 1 })),
  );
  // To a server a commit may be on its way; nothing is between a process and its file.
  const underWay = { when: 'under way', statement: 'COMMIT', dieAt: statements.length };

  describe(`a process that dies in a transaction on ${database}`, () => {
    it('has those statements in it', async () => {
      const child = settling({});
      const made = (await child.next<{ statements: string[] }>()).statements;
      await child.finish();
      expect(made.map((text) => (text === statements[0] ? text : /[A-Z]+/.exec(text)![0]))).toEqual(
        statements,
      );
      expect(await ledger()).toEqual(['settled']);
    });

    it.each(openTransactions === undefined ? deaths : [...deaths, underWay])(
      '[S7] [V29] $when $statement ($dieAt) leaves effect and record in agreement, and the run happens once in the end',
      async ({ dieAt, when, statement }) => {
        const child = settling({ dieAt, when });
        expect((await child.ended).signal).toBe('SIGKILL');
        const guard = locked();
        await endedSessions();
        const before = (await guard.runs.get('settle', '2026-11-29'))!.run;
        // A commit that was on its way may or may not have arrived.
        const states = statement !== 'COMMIT' || when === 'before' ? ['running'] : ['completed'];
        if (when === 'under way') states.push('running');
        expect(states).toContain(before.state);
        expect(await ledger()).toEqual(before.state === 'completed' ? ['settled'] : []);
        const join = { key: '2026-11-29', wait: '10s', ttl: '1s', onDuplicate: 'result' } as const;
        const again = await guard.run('settle', join, () =>
          dataSource().transaction(async (manager) => {
            await settle(manager);
            await completeRun(manager);
          }),
        );
        expect(again).toMatchObject({ status: 'completed' });
        expect(await ledger()).toEqual(['settled']);
        expect((await guard.runs.get('settle', '2026-11-29'))!.run.state).toBe('completed');
      },
    );
  });

  /** Waits until the server has done with the sessions of the dead process. */
  async function endedSessions(): Promise<void> {
    if (openTransactions === undefined) return;
    await until('the sessions of the dead process are over', async () => {
      const [found]: { open: string }[] = await dataSource().query(openTransactions);
      return found?.open === '0';
    });
  }
}
