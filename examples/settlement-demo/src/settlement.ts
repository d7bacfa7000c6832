/**
 * The main job. `settle` is what an application would write: a decorated method, called every second on every node,
 * whose work runs once. Its transactions begin with `assertFence`, so a node that lost its run cannot write any more.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { currentLock, currentRun, GuardError, SingleRun } from '@guard/core';
import { assertFence } from '@guard/typeorm';
import type { EntityManager } from 'typeorm';
import { type Ledger, type Owed, owedIn, pay } from './ledger.js';
import { keyOf } from './seconds.js';

/** Merchants that are paid in one transaction. */
const BATCH = 10;
/** How long the bank takes to answer for one batch. */
const BANK_MS = 100;

/** What the job tells of itself. The demo listens, and lets a worker stand still in the middle of a run. */
export interface Stage {
  began(second: number, owed: number): void;
  /** Half of an occurrence is paid. `'careless'`: go on without looking whether the run is still ours. */
  halfway(second: number, paid: number): Promise<'go-on' | 'careless'>;
  paid(second: number, lines: readonly Owed[]): void;
  refused(second: number, error: GuardError): void;
}

/** What begins every transaction of a run: throws where the run is not ours any more. */
type Fence = (manager: EntityManager) => Promise<void>;

/** The settlement of one node. */
export class Settlement {
  constructor(
    private readonly ledger: Ledger,
    private readonly node: string,
    private readonly stage: Stage,
    /** The second of the first occurrence. */
    private readonly first: () => number,
  ) {}

  /** Settles the payments of one second, once, on whichever node. */
  @SingleRun({ name: 'settlement', key: keyOf, input: (second: number) => second })
  async settle(second: number): Promise<void> {
    const lock = currentLock()!; // inside a run there is one
    await this.payAll(second, currentRun()?.signal, async (manager) => {
      try {
        await assertFence(manager, lock);
      } catch (error) {
        if (GuardError.is(error)) this.stage.refused(second, error);
        throw error;
      }
    });
  }

  /** The same job as it was before Guard. */
  async settleUnguarded(second: number): Promise<void> {
    await this.payAll(second, undefined, async () => undefined);
  }

  private async payAll(second: number, signal: AbortSignal | undefined, fence: Fence): Promise<void> {
    // The fence comes before the reading: from then on no older run can write what is read here as missing.
    const owed = await this.ledger.transaction(async (manager) => {
      await fence(manager);
      return owedIn(manager, second - this.first());
    });
    this.stage.began(second, owed.length);
    const batches = inBatches(owed);
    for (const [index, batch] of batches.entries()) {
      if (index === Math.floor(batches.length / 2)) {
        const then = await this.stage.halfway(second, index * BATCH);
        if (then === 'careless') return this.payCarelessly(second, batch, fence);
      }
      await pause(BANK_MS, undefined, { signal });
      await this.payBatch(batch, fence);
    }
    this.stage.paid(second, owed);
  }

  private async payBatch(batch: readonly Owed[], fence: Fence): Promise<void> {
    await this.ledger.transaction(async (manager) => {
      await fence(manager);
      await pay(manager, batch, this.node);
    });
  }

  /** What nobody should write: no look at the signal, and whatever the ledger answers is taken for success. */
  private async payCarelessly(second: number, batch: readonly Owed[], fence: Fence): Promise<void> {
    await this.payBatch(batch, fence).catch(() => undefined);
    this.stage.paid(second, batch);
  }
}

function inBatches(owed: readonly Owed[]): readonly (readonly Owed[])[] {
  const batches = Math.ceil(owed.length / BATCH);
  return Array.from({ length: batches }, (_, index) => owed.slice(index * BATCH, (index + 1) * BATCH));
}
