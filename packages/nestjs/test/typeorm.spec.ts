/** With @nestjs/typeorm on embedded SQLite: the module's own DataSource, its transactions, and the order at the end. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentLock, currentRun, Locked, SingleRun } from '@guard/core';
import { GuardModule } from '@guard/nestjs';
import {
  assertFence,
  completeRun,
  guardEntities,
  typeormLocks,
  typeormRuns,
  typeormState,
} from '@guard/typeorm';
import { Injectable } from '@nestjs/common';
import { getDataSourceToken, InjectDataSource, InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Column, DataSource, Entity, PrimaryColumn, Repository } from 'typeorm';
import { closeAll, guardOf, started } from './support/app.js';

@Entity()
class Account {
  @PrimaryColumn('text') id!: string;
  @Column('integer') cents!: number;
}

@Injectable()
class Ledger {
  finish: () => void = () => undefined;
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @InjectRepository(Account) readonly accounts: Repository<Account>,
  ) {}

  @SingleRun({ key: (id: string) => id, onDuplicate: 'throw' })
  async book(id: string, cents: number, fails = false): Promise<number> {
    return this.dataSource.transaction(async (manager) => {
      await manager.increment(Account, { id: 'ada' }, 'cents', cents);
      if (fails) throw new Error('no');
      await completeRun(manager, cents);
      return cents;
    });
  }

  @Locked({ key: (id: string) => ['account', id] })
  async transfer(id: string, cents: number): Promise<bigint> {
    const lock = currentLock()!;
    await this.dataSource.transaction(async (manager) => {
      await assertFence(manager, lock);
      await manager.increment(Account, { id }, 'cents', cents);
    });
    return lock.token;
  }

  @SingleRun({ window: '1d' }) async slow(): Promise<void> {
    await new Promise<void>((resolve) => {
      currentRun()!.stopSignal.addEventListener('abort', () => resolve());
    });
    await this.accounts.update({ id: 'ada' }, { cents: 7 });
  }
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'guard-nest-'));
});
afterEach(async () => {
  await closeAll();
  rmSync(folder, { recursive: true });
});

async function application(): Promise<Awaited<ReturnType<typeof started>>> {
  const app = await started({
    imports: [
      TypeOrmModule.forRoot({
        type: 'better-sqlite3',
        database: join(folder, 'ledger.sqlite'),
        entities: [Account, ...Object.values(guardEntities())],
        synchronize: true,
      }),
      TypeOrmModule.forFeature([Account]),
      GuardModule.forRootAsync({
        inject: [getDataSourceToken()],
        useFactory: (dataSource: DataSource) => ({
          locks: typeormLocks(dataSource),
          state: typeormState(dataSource),
          runs: typeormRuns(dataSource),
        }),
      }),
    ],
    providers: [Ledger],
  });
  await app.get(Ledger).accounts.save({ id: 'ada', cents: 0 });
  return app;
}

test('effects and completion are committed together, and a duplicate is refused', async () => {
  const app = await application();
  const ledger = app.get(Ledger);
  const cents = async (): Promise<number> => (await ledger.accounts.findOneByOrFail({ id: 'ada' })).cents;
  await expect(ledger.book('order-1', 5, true)).rejects.toThrow(/^no$/);
  expect(await cents()).toBe(0);
  await expect(ledger.book('order-1', 5)).resolves.toBe(5);
  await expect(ledger.book('order-1', 5)).rejects.toMatchObject({ code: 'run-skipped', reason: 'completed' });
  expect(await cents()).toBe(5);
  const tokens = [await ledger.transfer('ada', 1), await ledger.transfer('ada', 1)];
  expect(tokens[1]! > tokens[0]!).toBe(true);
  expect(await cents()).toBe(7);
});

test('[B109] at the end the guard lets work finish while the DataSource is still open', async () => {
  const app = await application();
  const dataSource = app.get<DataSource>(getDataSourceToken());
  const running = app.get(Ledger).slow();
  await new Promise((resolve) => setTimeout(resolve, 300));
  await app.close();
  await expect(running).resolves.toBeUndefined();
  expect([dataSource.isInitialized, guardOf(app).health().state]).toEqual([false, 'closed']);
  const again = await application();
  expect((await guardOf(again).runs.list({ task: 'Ledger.slow' })).runs[0]?.run.state).toBe('completed');
});
