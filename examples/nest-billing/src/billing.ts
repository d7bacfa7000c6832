/** The service, and all that Guard asks of it. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { currentLock, currentRun, Locked, SingleRun } from '@guard/core';
import { assertFence, completeRun } from '@guard/typeorm';
import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, IsNull } from 'typeorm';
import { replica } from './backends.js';
import { Account, Charge, Settlement } from './entities.js';

/** An order that is to be paid. */
export interface Order {
  readonly id: string;
  readonly cents: number;
  /** How long the bank takes. */
  readonly bankMs?: number;
}

/** What a customer gets for a charge, the first time and each time after it. */
export interface Receipt {
  readonly order: string;
  readonly charge: string;
  readonly node: string;
}

@Injectable()
export class Billing {
  private writing: Promise<unknown> = Promise.resolve();

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Every replica's timer calls it; one of them settles, and the settlement and the end of the run are one commit. */
  @SingleRun()
  @Cron(process.env['SETTLE_CRON'] ?? '0 3 * * *', { timeZone: 'UTC' })
  async settle(): Promise<void> {
    const instant = currentRun()!.key;
    await this.write(async (manager) => {
      // The write comes first: SQLite gives no write lock to a transaction that has read and is behind by now.
      await manager.update(Charge, { settledBy: IsNull() }, { settledBy: instant });
      const cents = (await manager.sum(Charge, 'cents', { settledBy: instant })) ?? 0;
      await manager.insert(Settlement, { id: randomUUID(), instant, cents, node: replica });
      await completeRun(manager);
    });
    console.log(`${replica}  settled ${instant}`);
  }

  /** One charge for each order: a duplicate gets the receipt of the first one. If this node dies, another goes on. */
  @SingleRun({
    name: 'charge',
    key: (order: Order) => order.id,
    input: (order: Order) => order,
    onDuplicate: 'result',
    wait: '20s',
  })
  async charge(order: Order): Promise<Receipt> {
    console.log(`${replica}  charges ${order.id} (${currentRun()!.trigger})`);
    await sleep(order.bankMs ?? 0, undefined, { signal: currentRun()!.signal });
    const receipt = { order: order.id, charge: randomUUID(), node: replica };
    await this.write(async (manager) => {
      await manager.insert(Charge, {
        id: receipt.charge,
        order: order.id,
        cents: order.cents,
        settledBy: null,
      });
      await completeRun(manager, receipt);
    });
    return receipt;
  }

  /** Under the lock of the account, and refused in the database if a later holder was there before. */
  @Locked({ key: (from: string) => ['account', from] })
  async transfer(from: string, to: string, cents: number): Promise<void> {
    const lock = currentLock()!;
    await this.write(async (manager) => {
      await assertFence(manager, lock);
      const account = await manager.findOneByOrFail(Account, { id: from });
      if (account.cents < cents) throw new Error(`${from} has only ${account.cents}`);
      await manager.decrement(Account, { id: from }, 'cents', cents);
      await manager.increment(Account, { id: to }, 'cents', cents);
    });
  }

  /** Transactions of one process wait for each other: TypeORM has one SQLite connection, which they would share. */
  private write<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    const written = this.writing.then(() => this.dataSource.transaction(work));
    this.writing = written.catch(() => undefined);
    return written;
  }
}
