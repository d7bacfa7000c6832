/**
 * What Guard writes inside the application's transactions, the same on every database: the fence of a stale holder, and
 * the completion of a run together with its effect. The last part kills the process at every statement.
 */
import { createGuard, memoryLocks, memoryState, type Guard, type Lock } from '@guard/core';
import { VirtualClock } from '@guard/testing';
import { assertFence, guardMigrations, typeormLocks, typeormRuns } from '@guard/typeorm';
import type { DataSource } from 'typeorm';
import { endChildren } from './child.js';
import { account, describeCompareAndSave, describeCreateRun } from './transaction-cases.js';
import { describeCompleteRun } from './complete-run-cases.js';
import { describeRelations, relationEntities } from './relation-cases.js';
import { describeDeaths } from './transaction-death-cases.js';
import type { TransactionParts, TransactionPlace, TransactionStage } from './transaction-stage.js';

/** Cases for one database. */
export function describeTransactions<P extends TransactionPlace>(
  database: string,
  parts: TransactionParts<P>,
): void {
  let place: P;
  let dataSource: DataSource;
  let opened: (() => Promise<unknown>)[];
  /** One guard for a whole case. */
  let shared: Guard | undefined;

  beforeEach(async () => {
    opened = [];
    shared = undefined;
    place = await parts.newPlace();
    dataSource = await place.dataSource({
      migrations: [...guardMigrations()],
      entities: [account, ...relationEntities],
      ...parts.options?.(place),
    });
    await dataSource.runMigrations();
    await dataSource.synchronize();
    await dataSource.query(parts.createLedger);
  });

  afterEach(async () => {
    for (const close of opened.reverse()) await close();
    await endChildren();
    await place.close();
  });

  const stage: TransactionStage = {
    dataSource: () => dataSource,
    guardOf(options) {
      const guard = createGuard(options);
      opened.push(() => guard.close());
      return guard;
    },
    locked: () =>
      stage.guardOf({
        ...{ locks: typeormLocks(dataSource), runs: typeormRuns(dataSource), namespace: 'billing' },
        sweepInterval: '1s',
      }),
    settle: (manager, what = 'settled') => manager.query(parts.insert, [what]),
    async ledger() {
      const rows: { what: string }[] = await dataSource.query('SELECT what FROM ledger ORDER BY id');
      return rows.map(({ what }) => what);
    },
  };

  describeFence(database, stage);
  describeCompleteRun(database, stage);
  describeCreateRun(database, {
    dataSource: stage.dataSource,
    guard: () => (shared ??= stage.locked()),
    elsewhere: () =>
      stage.guardOf({ locks: typeormLocks(dataSource), state: memoryState(), namespace: 'billing' }),
  });
  describeCompareAndSave(database, stage.dataSource);
  describeRelations(database, stage.dataSource);
  describeDeaths(database, stage, {
    ...parts,
    settling: (more) => parts.settling(place, dataSource, more),
  });
}

function describeFence(database: string, { dataSource, guardOf, settle, ledger }: TransactionStage): void {
  /** Two locks on one key, the older of which its holder has not let go of but was lost to the newer. */
  async function staleAndNewer(): Promise<[Lock, Lock]> {
    const clock = new VirtualClock();
    const locks = memoryLocks({ clock });
    const [one, other] = [guardOf({ locks, clock }), guardOf({ locks, clock })];
    const stale = await one.acquire('account:1', { ttl: '10s', renew: false });
    clock.block(11_000);
    return [stale, await other.acquire('account:1', { ttl: '1m' })];
  }

  describe(`assertFence on ${database}`, () => {
    it('[B04] refuses a stale holder in the transaction, which leaves nothing of it', async () => {
      const [stale, newer] = await staleAndNewer();
      await dataSource().transaction(async (manager) => {
        await assertFence(manager, newer);
        await settle(manager, 'newer');
      });
      const late = dataSource().transaction(async (manager) => {
        await settle(manager, 'stale');
        await assertFence(manager, stale);
      });
      await expect(late).rejects.toMatchObject({ code: 'stale-token', key: 'account:1' });
      expect(await ledger()).toEqual(['newer']);
    });

    it('lets a holder through again and again, and remembers nothing of what was rolled back', async () => {
      const [stale, newer] = await staleAndNewer();
      const undone = dataSource().transaction(async (manager) => {
        await assertFence(manager, newer);
        throw new Error('undone');
      });
      await expect(undone).rejects.toThrow('undone');
      const lost = dataSource().transaction((manager) => assertFence(manager, stale));
      await expect(lost).rejects.toMatchObject({ code: 'lock-lost' });
      for (const what of ['a', 'b']) {
        await dataSource().transaction(async (manager) => {
          await assertFence(manager, newer);
          await settle(manager, what);
        });
      }
      expect(await ledger()).toEqual(['a', 'b']);
    });

    it('compares tokens of one lock of one backend only', async () => {
      const [, newer] = await staleAndNewer();
      await dataSource().transaction((manager) => assertFence(manager, newer));
      const guard = guardOf({ locks: typeormLocks(dataSource(), { name: 'another' }) });
      await using same = await guard.acquire('account:1');
      await using other = await guard.acquire('account:2');
      expect(same.token).not.toBe(newer.token);
      for (const lock of [same, other])
        await dataSource().transaction((manager) => assertFence(manager, lock));
    });

    it('wants an open transaction and a lock, and says which table is missing', async () => {
      const [, lock] = await staleAndNewer();
      const refused = { code: 'invalid-argument' };
      await expect(assertFence(dataSource().manager, lock)).rejects.toMatchObject(refused);
      const elsewhere = dataSource().transaction(async (manager) => {
        for (const none of [undefined, null, {}, { token: 1n, key: 'k' }]) {
          await expect(assertFence(manager, none as unknown as Lock)).rejects.toMatchObject(refused);
        }
        await assertFence(manager, lock, { prefix: 'other_' });
      });
      await expect(elsewhere).rejects.toMatchObject({
        code: 'schema-missing',
        message: expect.stringContaining('ensureSchema'),
      });
    });
  });
}
