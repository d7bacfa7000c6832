/** A service as an application has it: a class, with no framework around it. Its guard is bound in `main.ts`. */
import { currentLock, type Guard, Locked, SingleRun } from '@guard/core';

/** What one payment brings, in cents. */
export const PAYMENT_CENTS = 100;
/** What a settlement takes, in cents. */
export const FEE_CENTS = 10;

/** Balances of accounts, in the state of the guard. */
export class Accounts {
  constructor(
    private readonly guard: Guard,
    private readonly say: (text: string) => void,
    /** Other runs of this program keep their books beside these. */
    private readonly books: string,
  ) {}

  /** Reads, adds and writes: the lock keeps every other replica out meanwhile. */
  @Locked({ key: (account: string) => ['account', account], ttl: '5s' })
  async payIn(account: string): Promise<void> {
    await this.add(account, PAYMENT_CENTS);
  }

  /** Once for each account and day, however many replicas ask for it: whoever comes later goes on, and nothing is done. */
  @SingleRun({ key: (account: string, day: string) => [account, day], ttl: '5s', wait: '30s' })
  async settle(account: string, day: string): Promise<void> {
    await this.takeFee(account);
    this.say(`settled ${account}, ${day}`);
  }

  /** The balance, in cents. */
  async balance(account: string): Promise<number> {
    return (await this.guard.state.get<number>(this.keyOf(account)))?.value ?? 0;
  }

  /** Hears of new balances. */
  watch(account: string, onBalance: (cents: number) => void): Promise<AsyncDisposable> {
    return this.guard.state.watch<number>(this.keyOf(account), ({ entry }) => onBalance(entry?.value ?? 0));
  }

  @Locked({ key: (account: string) => ['account', account], ttl: '5s' })
  private async takeFee(account: string): Promise<void> {
    await this.add(account, -FEE_CENTS);
  }

  /** Under the lock: a holder that was slow, and is followed by another one by now, is refused (`stale-token`). */
  private async add(account: string, cents: number): Promise<void> {
    const lock = currentLock();
    const balance = await this.balance(account);
    await this.guard.state.set(this.keyOf(account), balance + cents, lock === undefined ? {} : { lock });
  }

  private keyOf(account: string): string {
    return `${this.books}:${account}`;
  }
}
