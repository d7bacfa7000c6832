/** A service as an application has it: a class over its own table, with no framework around it. `main.ts` binds its guard. */
import { currentLock, Locked, SingleRun } from '@guard/core';
import { assertFence, completeRun } from '@guard/typeorm';
import { type DataSource, type EntityManager, EntitySchema } from 'typeorm';

/** What one payment brings, in cents. */
export const PAYMENT_CENTS = 100;
/** What a settlement takes, in cents. */
export const FEE_CENTS = 10;

/** A row of the application's own table. */
interface Balance {
  readonly account: string;
  readonly cents: number;
}

/** Balances of accounts. */
export const balances = new EntitySchema<Balance>({
  name: 'typeorm_service_balance',
  columns: { account: { type: String, primary: true, length: 100 }, cents: { type: Number } },
});

/** Balances of accounts, in the database of the application. */
export class Accounts {
  constructor(
    private readonly db: DataSource,
    private readonly say: (text: string) => void,
    /** Other runs of this program keep their books beside these. */
    private readonly books: string,
  ) {}

  /** Reads, adds and writes: the lock keeps every other replica out meanwhile. */
  @Locked({ key: (account: string) => ['account', account], ttl: '5s' })
  async payIn(account: string): Promise<void> {
    await this.db.transaction((manager) => this.add(manager, account, PAYMENT_CENTS));
  }

  /** Once for each account and day, however many replicas ask for it: whoever comes later goes on, and nothing is done. */
  @SingleRun({ key: (account: string, day: string) => [account, day], ttl: '5s', wait: '30s' })
  async settle(account: string, day: string): Promise<void> {
    await this.takeFee(account);
    this.say(`settled ${account}, ${day}`);
  }

  /** The balance, in cents. */
  async balance(account: string): Promise<number> {
    const found = await this.db.manager.findOneBy(balances, { account: this.nameOf(account) });
    return found?.cents ?? 0;
  }

  /** The fee and the end of the run that takes it are one commit: whatever dies when, it is taken once. */
  @Locked({ key: (account: string) => ['account', account], ttl: '5s' })
  private async takeFee(account: string): Promise<void> {
    await this.db.transaction(async (manager) => {
      await this.add(manager, account, -FEE_CENTS);
      await completeRun(manager);
    });
  }

  /** Under the lock: a holder that was slow, and is followed by another one by now, is refused (`stale-token`). */
  private async add(manager: EntityManager, account: string, cents: number): Promise<void> {
    const lock = currentLock();
    if (lock !== undefined) await assertFence(manager, lock);
    const name = this.nameOf(account);
    const found = await manager.findOneBy(balances, { account: name });
    await manager.save(balances, { account: name, cents: (found?.cents ?? 0) + cents });
  }

  private nameOf(account: string): string {
    return `${this.books}:${account}`;
  }
}
