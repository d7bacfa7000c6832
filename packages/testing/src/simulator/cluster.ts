/** The nodes of a simulation: processes that start, are killed, are closed, and start again in the same place. */
import { SeededRandom } from '../clock/seeded-random.js';
import { callBounds, GRACE_MS, sweepIntervalMs } from './bounds.js';
import type { Books } from './books.js';
import { Link } from './link.js';
import { NodeClock } from './node-clock.js';
import { SimNode } from './node.js';
import type { Server } from './server.js';
import { between, chance } from './chance.js';
import type { SimulatedCore, Stage } from './stage.js';
import { NAMESPACE, Workload } from './workload.js';

/** One running process. */
export interface Member {
  readonly node: SimNode;
  readonly link: Link;
  readonly workload: Workload;
}

/** A place for a process, which outlives it. */
interface Slot {
  readonly rate: number;
  readonly wallOffsetMs: number;
  /** A wall clock that steps back hides a sleep of the same length; which of the two happens here [S1]. */
  readonly sleeps: boolean;
  /** Its processes live beside the backend, and are answered at once. */
  readonly near: boolean;
  starts: number;
  member: Member | undefined;
}

/** The share of answers at once behind which the process is stopped or killed. */
const STRUCK_SHARE = 0.03;

/** All places. */
export class Cluster {
  readonly #slots: Slot[] = [];
  readonly #killed = new Set<string>();
  #lastTtl = 0;
  #calm = false;

  constructor(
    private readonly stage: Stage,
    private readonly core: SimulatedCore,
    private readonly server: Server,
    private readonly books: Books,
  ) {
    const { random, plan } = stage;
    for (let slot = 0; slot < plan.nodes; slot += 1) {
      const rate = plan.faults.has('drift') ? between(random, 0.995, 1.005) : 1;
      const wallOffsetMs = between(random, -5_000, 5_000);
      const sleeps = plan.faults.has('suspend') && (chance(random, 0.5) || !plan.faults.has('wall-step'));
      const near = plan.atOnce && (slot === 0 || chance(random, 0.5));
      this.#slots.push({ rate, wallOffsetMs, sleeps, near, starts: 0, member: undefined });
    }
  }

  /** Processes that are there, running or stopped. */
  get members(): Member[] {
    return this.#slots.flatMap(({ member }) => member ?? []);
  }

  /** Whether machines of this place sleep; otherwise their wall clocks may step back. */
  sleeps({ slot }: SimNode): boolean {
    return this.#slots[slot]!.sleeps;
  }

  /** From now on nothing happens to processes by itself. */
  calm(): void {
    this.#calm = true;
  }

  wasKilled(name = ''): boolean {
    return this.#killed.has(name);
  }

  /** Starts a process in every free place. */
  startAll(): void {
    this.#slots.forEach((slot, index) => slot.member === undefined && this.#start(slot, index));
  }

  /** SIGKILL; after a while another one is started. */
  kill({ node }: Member, restartAfterMs: number): void {
    node.kill();
    this.#killed.add(node.name);
    this.books.calls.forget(node);
    this.books.beliefs.forget(node);
    this.#gone(node, restartAfterMs);
  }

  /** The owner closes its guard; after a while another one is made. */
  async close({ node, workload }: Member, restartAfterMs: number): Promise<void> {
    if (node.closing) return;
    const { calls } = this.books;
    node.closing = true;
    workload.stop();
    this.stage.journal.note(`${node.name} closes`);
    const call = calls.start(node, 'close', callBounds(this.stage.plan).close);
    await node.guard.close();
    calls.end(call);
    this.stage.journal.note(`${node.name} is closed`);
    this.#gone(node, restartAfterMs);
  }

  /** Now and then a process is stopped or killed right behind an answer, before anything else reaches it. */
  #strikeNear(node: SimNode): void {
    const { random, plan, world } = this.stage;
    const kinds = (['pause', 'crash'] as const).filter((kind) => plan.faults.has(kind));
    const [first, ...others] = kinds;
    if (this.#calm || first === undefined || !chance(random, STRUCK_SHARE)) return;
    const kind = random.pick([first, ...others]);
    const ms = between(random, 0.1, 2.5) * plan.ttlMs;
    world.after(0, () => {
      const member = this.members.find((one) => one.node === node);
      if (this.#calm || member === undefined) return;
      this.stage.journal.count(`${kind} behind an answer at once`);
      if (kind === 'pause') node.stop(ms, false);
      else this.kill(member, ms);
    });
  }

  #gone(node: SimNode, restartAfterMs: number): void {
    const slot = this.#slots[node.slot]!;
    if (slot.member?.node !== node) return;
    slot.member = undefined;
    this.stage.world.after(restartAfterMs, () => slot.member ?? this.#start(slot, node.slot));
  }

  #start(slot: Slot, index: number): void {
    const { stage, server, books } = this;
    const { random, world, plan } = stage;
    slot.starts += 1;
    const { rate, wallOffsetMs } = slot;
    const clock = new NodeClock(world, { rate, monoMs: between(random, 0, 100_000), wallOffsetMs });
    const node = new SimNode(`n${index}.${slot.starts}`, index, clock, stage);
    const near = slot.near ? { answered: () => this.#strikeNear(node) } : undefined;
    const link = new Link(stage, node, server, books.calls, books.beliefs, near);
    node.guard = this.core.createGuard({
      locks: link.locks,
      state: link.store,
      runs: this.core.kvRuns(link.store, {
        random: new Named(`${node.name}-run`, random.integer(0, 2 ** 31 - 1)),
      }),
      sweepInterval: sweepIntervalMs(plan),
      namespace: NAMESPACE,
      node: { label: node.name },
      clock,
      random: new Named(node.name, random.integer(0, 2 ** 31 - 1)),
      grace: GRACE_MS,
    });
    const workload = new Workload(stage, node, books, () => plan.ttlMs + (this.#lastTtl += 1));
    slot.member = { node, link, workload };
    stage.journal.note(`${node.name} starts`);
    workload.start();
  }
}

/** Ids that a reader of a trace can tell apart, and fractions from a seed. */
class Named {
  readonly #random: SeededRandom;
  #ids = 0;

  constructor(
    private readonly name: string,
    seed: number,
  ) {
    this.#random = new SeededRandom(seed);
  }

  id(): string {
    return `${this.name}-${(this.#ids += 1)}`;
  }

  fraction(): number {
    return this.#random.fraction();
  }
}
