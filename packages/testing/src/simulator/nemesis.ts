/** Plans the faults that are more than the fate of one request: one after the other, each drawn from the plan. */
import type { Cluster, Member } from './cluster.js';
import type { SimulatedFault } from './plan.js';
import type { Server } from './server.js';
import { between } from './chance.js';
import type { Stage } from './stage.js';

/** Faults that somebody has to start; the others meet single requests. */
type Planned = Exclude<SimulatedFault, 'loss' | 'delay' | 'repeat' | 'notices' | 'drift'>;

/** The adversary. */
export class Nemesis {
  #stopped = false;
  readonly #kinds: (Planned | 'weather')[];

  constructor(
    private readonly stage: Stage,
    private readonly cluster: Cluster,
    private readonly server: Server,
  ) {
    const { faults } = stage.plan;
    const planned: Planned[] = [
      'cut',
      'outage',
      'restart',
      'pause',
      'crash',
      'close',
      'wall-step',
      'suspend',
    ];
    planned.push('backend-step', 'data-loss');
    this.#kinds = planned.filter((kind) => faults.has(kind));
    const meets = ['loss', 'delay', 'repeat', 'notices'].some((kind) => faults.has(kind as SimulatedFault));
    if (meets) this.#kinds.push('weather', 'weather');
  }

  /** Plans the first fault. */
  start(): void {
    if (this.#kinds.length > 0) this.#planNext();
  }

  /** Ends everything that is going on. */
  stop(): void {
    this.#stopped = true;
    this.cluster.calm();
    for (const { link } of this.cluster.members) link.heal();
  }

  #planNext(): void {
    const { world, random, plan } = this.stage;
    world.after(between(random, 0.1, 2) * plan.calmTtls * plan.ttlMs, () => {
      if (this.#stopped) return;
      this.#strike(random.pick(this.#kinds as [Planned | 'weather']));
      this.#planNext();
    });
  }

  #strike(kind: Planned | 'weather'): void {
    const { random, plan, journal } = this.stage;
    const { members } = this.cluster;
    const [first, ...others] = members;
    if (first === undefined) return;
    const member = random.pick([first, ...others]);
    const { node, link } = member;
    const ms = between(random, 0.1, 2.5) * Math.min(plan.ttlMs, random.pick([plan.ttlMs, 8_000]));
    journal.note(`fault: ${kind} at ${node.name}`);
    switch (kind) {
      case 'weather':
        link.faultRate = random.pick([0, 0.02, 0.1, 0.4, 0.8]);
        return;
      case 'cut':
        return link.trouble('cut', ms);
      case 'outage':
        for (const one of members) one.link.trouble('down', ms);
        return;
      case 'pause':
      case 'suspend':
        return this.#stop(member, kind, ms);
      case 'crash':
        return this.cluster.kill(member, ms);
      case 'close':
        return void this.cluster.close(member, ms);
      case 'wall-step':
        return this.#stepWall(member);
      case 'backend-step':
        return this.server.clock.stepWall(between(random, -3, 3) * plan.ttlMs);
      case 'restart':
      case 'data-loss':
        return this.#backend(kind);
    }
  }

  #stop({ node }: Member, kind: 'pause' | 'suspend', ms: number): void {
    const asleep = kind === 'suspend' && this.cluster.sleeps(node);
    node.stop(ms, asleep);
  }

  #stepWall({ node }: Member): void {
    const { random, plan } = this.stage;
    const ms = random.pick([15, 200, plan.ttlMs, 3 * plan.ttlMs]) * random.fraction();
    const back = !this.cluster.sleeps(node) && random.fraction() < 0.5;
    // A holder in doubt is a disturbance too: it has to ask.
    node.disturb(2_000);
    node.clock.stepWall(back ? -ms : ms);
  }

  #backend(kind: 'restart' | 'data-loss'): void {
    const { members } = this.cluster;
    for (const { node } of members) node.disturb(8 * this.stage.plan.ttlMs);
    if (kind === 'data-loss') return void this.server.loseData();
    void this.server.restart(this.stage.random.fraction() < 0.5);
    const ms = between(this.stage.random, 0, this.stage.plan.ttlMs);
    for (const { link } of members) link.trouble('down', ms);
    this.stage.world.after(ms, () => void this.server.reconnect());
  }
}
