/**
 * One node: a process with a ledger, a guard and a plain timer that calls the job every second, as a cron library
 * would. Started by the director; ends when the director says so, or is gone.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { bindGuard, currentRun, type Guard, GuardError } from '@guard/core';
import { type DemoGuard, demoGuard } from './guard.js';
import { Ledger } from './ledger.js';
import type { Order, Report, WorkerConfig } from './messages.js';
import { secondOf, thisSecond } from './seconds.js';
import { Settlement, type Stage } from './settlement.js';

type Begin = Extract<Order, { type: 'begin' }>;
type Paid = Pick<Extract<Report, { type: 'settled' }>, 'merchants' | 'cents'>;

/** Errors that tell a node that its run is somebody else's now: reported by the ledger's fence and by the guard. */
const LOST = ['stale-token', 'lock-lost', 'lock-suspect'] as const;

/** Longer than any outage of the demo. */
const MAX_TRIES = 30;
const AGAIN_MS = 1_000;

class Worker implements Stage {
  private plan: Begin = { type: 'begin', first: Infinity, last: -Infinity, halts: [] };
  private readonly standing = new Map<number, (then: 'go-on' | 'stop') => void>();
  private readonly paidIn = new Map<number, Paid>();
  private readonly calls = new Set<Promise<void>>();
  private timer: NodeJS.Timeout | undefined;
  private readonly settlement: Settlement;

  private constructor(
    private readonly config: WorkerConfig,
    private readonly ledger: Ledger,
    private readonly demo: DemoGuard | undefined,
  ) {
    this.settlement = new Settlement(ledger, config.label, this, () => this.plan.first);
  }

  static async start(config: WorkerConfig): Promise<Worker> {
    const ledger = await Ledger.open(config.file);
    const demo = config.guarded
      ? await demoGuard(config.label, config.backends, ledger.dataSource)
      : undefined;
    const worker = new Worker(config, ledger, demo);
    if (demo !== undefined) await worker.join(demo.guard);
    report({ type: 'ready' });
    return worker;
  }

  obey(order: Order): void {
    switch (order.type) {
      case 'begin':
        this.plan = order;
        return this.tick(order.first);
      case 'answer':
        return this.standing.get(order.second)?.(order.then);
      case 'finish':
        void this.finish();
        return;
    }
  }

  began(second: number, owed: number): void {
    report({ type: 'began', second, owed, takeover: currentRun()?.trigger === 'takeover' });
  }

  async halfway(second: number, paid: number): Promise<'go-on' | 'careless'> {
    if (!this.plan.halts.includes(second)) return 'go-on';
    const then = await new Promise<'go-on' | 'stop'>((resolve) => {
      this.standing.set(second, resolve);
      report({ type: 'halfway', second, paid });
    });
    this.standing.delete(second);
    if (then === 'go-on') return 'go-on';
    await this.standStill(second);
    return 'careless';
  }

  paid(second: number, lines: readonly { readonly cents: number }[]): void {
    const cents = lines.reduce((sum, line) => sum + line.cents, 0);
    this.paidIn.set(second, { merchants: lines.length, cents });
  }

  refused(second: number, error: GuardError): void {
    report({ type: 'refused', second, what: 'ledger write', reason: error.message });
  }

  /** Registers the job, so that this node also goes on with runs of others, and listens. */
  private async join(guard: Guard): Promise<void> {
    bindGuard(this.settlement, guard);
    guard.on('run-completed', ({ run }) => this.settled(secondOf(run.key)));
    guard.on('run-refused', ({ run, reason }) => {
      report({ type: 'refused', second: secondOf(run.key), what: 'finish', reason });
    });
    guard.on('error', ({ error, during }) => trouble(error, during));
    await guard.start();
  }

  /**
   * Stops this process from its own code, so that none of its transactions is open: whoever is stopped while it holds
   * the lock of a SQLite file stops all others too, with or without a guard.
   */
  private async standStill(second: number): Promise<void> {
    await this.ledger.alone(async () => {
      await new Promise<void>((sent) => report({ type: 'stopping', second }, sent));
      process.kill(process.pid, 'SIGSTOP');
    });
  }

  /** A call for every second that has begun, also for those that a busy process was late for. */
  private tick(next: number): void {
    let second = next;
    for (; second <= Math.min(thisSecond(), this.plan.last); second += 1) this.call(second);
    if (second > this.plan.last) return;
    this.timer = setTimeout(() => this.tick(second), 1_000 - (Date.now() % 1_000));
  }

  private call(second: number): void {
    const call = this.settleSurely(second)
      .catch((error: unknown) => {
        if (!LOST.some((code) => GuardError.is(error, code))) trouble(error, 'a call', second);
      })
      .finally(() => this.calls.delete(call));
    this.calls.add(call);
  }

  /**
   * A call that found no locks or no runs has left nothing that anybody could go on with: the caller makes it again. If
   * another worker's was heard meanwhile, it is skipped.
   */
  private async settleSurely(second: number): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.settle(second);
      } catch (error) {
        if (tries === MAX_TRIES || !GuardError.is(error, 'unavailable')) throw error;
        trouble(error, 'a call, to be made again', second);
        await pause(AGAIN_MS);
      }
    }
  }

  private async settle(second: number): Promise<void> {
    if (this.demo !== undefined) return this.settlement.settle(second);
    await this.settlement.settleUnguarded(second);
    this.settled(second);
  }

  private settled(second: number): void {
    const paid = this.paidIn.get(second);
    if (paid !== undefined && (this.config.guarded || paid.merchants > 0))
      report({ type: 'settled', second, ...paid });
  }

  private async finish(): Promise<void> {
    clearTimeout(this.timer);
    await Promise.all(this.calls);
    await this.demo?.close();
    await this.ledger.close();
    process.disconnect();
  }
}

function report(what: Report, sent?: () => void): void {
  process.send?.(what, undefined, undefined, () => sent?.());
}

const told = new Set<string>();

/** An outage brings the same trouble again and again: it is told once. */
function trouble(error: unknown, during: string, second?: number): void {
  const message = `${during}: ${error instanceof Error ? error.message : String(error)}`;
  if (told.has(message)) return;
  told.add(message);
  report({ type: 'trouble', message, ...(second === undefined ? {} : { second }) });
}

process.once('disconnect', () => process.exit());
const worker = await Worker.start(JSON.parse(process.argv[2] ?? '') as WorkerConfig);
process.on('message', (order) => worker.obey(order as Order));
