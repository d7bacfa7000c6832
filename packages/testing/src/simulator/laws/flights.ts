/**
 * What a guard owes its backend: per verb never two requests in flight for one key, whatever happens to the answers.
 * A request that its guard gave up does not count any more.
 */
import type { SimNode } from '../node.js';
import type { Stage } from '../stage.js';

/** A guard gives no request up before a third of its lease, or this. */
const SURE_FLIGHT_MS = 2_000;

/** The requests of one process that are on their way. */
export class Flights {
  readonly #sentMonoMs = new Map<string, number>();
  readonly #shortestMs: number;

  constructor(
    private readonly stage: Stage,
    private readonly node: SimNode,
  ) {
    this.#shortestMs = Math.min(SURE_FLIGHT_MS, stage.plan.ttlMs / 3);
  }

  /** A batch leaves. Answers what to call when its answer is in. */
  leave(verb: string, operations: readonly { readonly key: string }[]): () => void {
    const { monoMs } = this.node.clock.now();
    const names = operations.map(({ key }) => `${verb} ${key}`);
    for (const name of names) {
      const before = this.#sentMonoMs.get(name);
      if (before !== undefined && monoMs - before < this.#shortestMs - 1)
        this.stage.journal.broken('port', `${this.node.name} sends ${name} beside one that is in flight`);
      this.#sentMonoMs.set(name, monoMs);
    }
    return () => {
      for (const name of names) if (this.#sentMonoMs.get(name) === monoMs) this.#sentMonoMs.delete(name);
    };
  }
}
