/**
 * The end of a simulation, without faults: whatever was going on settles, every node gets every lock, and when all
 * guards are closed nothing is left, neither in the backend nor on the clocks of the nodes.
 */
import type { Books } from './books.js';
import type { Cluster } from './cluster.js';
import type { Server } from './server.js';
import { REGISTERED } from './run-work.js';
import type { Stage } from './stage.js';
import { fullLockKey, NAMESPACE } from './workload.js';
import { settle } from './world.js';

/** True time in which everything has to settle: the longest bounds of single calls, several in a row. */
const SETTLE_MS = 600_000;
/** A simulation that needs more turns than this to settle spins. */
const MAX_TURNS = 50_000;

/** The longest lease that a worker asks for. */
const LONGEST_LEASE_TTLS = 5;

/** The last act. */
export class Epilogue {
  constructor(
    private readonly stage: Stage,
    private readonly cluster: Cluster,
    private readonly server: Server,
    private readonly books: Books,
    private readonly turn: () => Promise<boolean>,
  ) {}

  async play(): Promise<void> {
    const { cluster, stage } = this;
    stage.journal.note('the faults end');
    for (const { workload } of cluster.members) workload.stop();
    await this.#until('the workers end', () => this.#isQuiet());
    await this.#until(
      'all nodes are up',
      () => cluster.members.length === stage.plan.nodes && this.#isQuiet(),
    );
    // What was given up while nothing could be cancelled ends by itself.
    await this.#wait(2 * stage.plan.ttlMs + 6_000);
    await this.#runsEnd();
    for (const act of [this.#probe, this.#close, this.#checkLeftovers])
      if (stage.journal.violation === undefined) await act.call(this);
  }

  #isQuiet(): boolean {
    for (const { workload, node } of this.cluster.members) {
      workload.stop();
      if (!workload.isIdle || !node.isUp || node.closing) return false;
    }
    return this.books.calls.openCount === 0;
  }

  /** Whatever a node that is gone left is taken over, and comes to its end (L4). */
  async #runsEnd(): Promise<void> {
    const { plan } = this.stage;
    // Whose tokens went back can be refused for ever: only a person can go on with such a run.
    if (!plan.runs || plan.beyondAssumptions) return;
    for (const { workload } of this.cluster.members) workload.sweep();
    await this.#until('every run ends', () => this.books.runs.open(REGISTERED).length === 0);
    await this.#until(
      'every planned instant has its record',
      () => this.books.occurrences.lacking().length === 0,
    );
  }

  /** Every node takes every lock. */
  async #probe(): Promise<void> {
    const { plan, journal } = this.stage;
    const waitMs = 30_000 + 4 * plan.ttlMs;
    let open = 0;
    for (const { workload, node } of this.cluster.members) {
      for (const key of plan.keys) {
        open += 1;
        void workload.probe(key, waitMs).then((got) => {
          open -= 1;
          if (!got) journal.broken('L3', `${node.name} cannot get ${key}, although nobody uses it`);
        });
      }
    }
    await this.#until('every node gets every lock', () => open === 0);
  }

  async #close(): Promise<void> {
    const clocks = this.cluster.members.map(({ node }) => node.clock);
    let open = 0;
    for (const member of this.cluster.members) {
      open += 1;
      void this.cluster.close(member, Infinity).then(() => (open -= 1));
    }
    await this.#until('the guards are closed', () => open === 0);
    await this.#wait(20);
    const timers = clocks.reduce((sum, clock) => sum + clock.refTimers, 0);
    if (timers > 0) this.stage.journal.broken('L5', `${timers} timers keep closed guards alive`);
  }

  async #checkLeftovers(): Promise<void> {
    const asked = await this.server.inspect({ keys: this.stage.plan.keys.map(fullLockKey) });
    // Nobody probed the locks of runs: one that was lost right after an extension that nobody heard of may still run.
    await this.#wait(LONGEST_LEASE_TTLS * this.stage.plan.ttlMs);
    const held = await this.server.inspect({ prefix: `${NAMESPACE}/`, limit: 100 });
    const infos = [...asked, ...held];
    for (const { key, held, waiting, holder } of infos) {
      // The lock of a node lasts longer than the rest of the simulation.
      if (key.startsWith(`${NAMESPACE}/node/`) && this.cluster.wasKilled(holder?.label)) continue;
      if (held || waiting > 0)
        this.stage.journal.broken(
          'S4',
          `${key} is ${held ? 'held' : 'free'}, ${waiting} wait, and nobody is there`,
        );
    }
  }

  async #wait(ms: number): Promise<void> {
    let over = false;
    this.stage.world.after(ms, () => (over = true));
    await this.#until('time passes', () => over);
  }

  async #until(what: string, done: () => boolean): Promise<void> {
    const { world, journal } = this.stage;
    const endMs = world.nowMs + SETTLE_MS;
    // What was asked for between two turns is on its way before the next one.
    await settle();
    for (let turns = 0; !done() && journal.violation === undefined; turns += 1) {
      const stuck = turns > MAX_TURNS || world.nowMs > endMs || !(await this.turn());
      if (stuck && journal.violation === undefined)
        journal.broken(
          'L3',
          `not settled: ${what}; open: ${[...this.books.calls.openNames(), ...this.books.runs.open(REGISTERED)].join(', ')}`,
        );
    }
  }
}
