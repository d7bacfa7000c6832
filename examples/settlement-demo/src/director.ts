/**
 * The scene: three workers, one of them killed and one stopped, each in the middle of a run. Written as one line of
 * steps, each of which waits for what it needs and for no longer than its limit; whatever goes wrong, the workers that
 * were started here end here.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ServedBackends, Store } from './backends.js';
import type { Order, Report, WorkerConfig } from './messages.js';
import { thisSecond } from './seconds.js';
import { money, type Timeline, type Tone } from './timeline.js';

/** What is to be played. */
export interface Scene {
  readonly file: string;
  readonly occurrences: number;
  /** How many of them no outage is for. */
  readonly calm: number;
  readonly guarded: boolean;
  readonly backends: ServedBackends;
  /** What is taken away, one after the other and for so long each, between the fault of one worker and the other's. */
  readonly outages: { readonly stores: readonly Store[]; readonly seconds: number };
}

/** What was seen. */
export interface Seen {
  /** The second of the first occurrence. */
  readonly first: number;
  readonly nodes: number;
  /** Ledger writes and finishes that were refused. */
  readonly refusedWrites: number;
}

const LABELS = ['worker-1', 'worker-2', 'worker-3'];
const LOOK_MS = 20;
const START_LIMIT_MS = 25_000;
/** For a takeover, which takes a lease of 2 s and a sweep of 1 s, on a machine that is busy with other things. */
const STEP_LIMIT_MS = 12_000;
/** Without a guard there is no takeover to wait for: as long as one would take. */
const UNGUARDED_STOP_MS = 3_000;

/**
 * Plays the scene, and leaves none of its processes behind.
 *
 * @throws a step did not come about, a worker ended by itself, or `signal` was aborted.
 */
export async function play(scene: Scene, timeline: Timeline, signal: AbortSignal): Promise<Seen> {
  const director = new Director(scene, timeline, signal);
  const killAll = (): void => director.killAll();
  process.once('exit', killAll);
  try {
    return await director.play();
  } finally {
    await director.endAll();
    process.off('exit', killAll);
  }
}

class Director {
  private readonly workers: Cast[];
  private readonly settled = new Set<number>();
  /** Who stands still first in the middle of a second that is halted. */
  private readonly standing = new Map<number, Cast>();
  private readonly takers = new Map<number, Cast>();
  private refusedWrites = 0;
  private problem: string | undefined;

  constructor(
    private readonly scene: Scene,
    private readonly timeline: Timeline,
    private readonly signal: AbortSignal,
  ) {
    this.workers = LABELS.map((label) => this.hire(label));
  }

  async play(): Promise<Seen> {
    const { occurrences, calm } = this.scene;
    await this.until('every worker is ready', () => this.workers.every(({ ready }) => ready), START_LIMIT_MS);
    const pids = this.workers.map(({ label, child }) => `${label} (pid ${child.pid})`);
    this.timeline.happened({ text: `ready: ${pids.join(', ')}` });
    const first = thisSecond() + 2;
    const last = first + occurrences - 1;
    const killAt = first + Math.floor(calm * 0.2);
    const stopAt = first + Math.floor(calm * 0.5) + (occurrences - calm);
    for (const worker of this.workers) worker.tell({ type: 'begin', first, last, halts: [killAt, stopAt] });

    await this.killOne(killAt, killAt - first);
    for (const store of this.scene.outages.stores) await this.takeAway(store);
    await this.stopOne(stopAt, stopAt - killAt);

    const all = (): boolean => this.settled.size === occurrences;
    await this.until('every occurrence is settled', all, (last - stopAt) * 1_000 + STEP_LIMIT_MS);
    for (const worker of this.workers) worker.tell({ type: 'finish' });
    await this.until('the workers have ended', () => this.workers.every(({ ended }) => ended), STEP_LIMIT_MS);
    return { first, nodes: this.workers.length, refusedWrites: this.refusedWrites };
  }

  /** Kills what was started here, by its own pid. A stopped process dies too. */
  killAll(): void {
    for (const { ended, child } of this.workers) if (!ended) child.kill('SIGKILL');
  }

  /** The same, and waits until they are gone. */
  async endAll(): Promise<void> {
    this.killAll();
    const startedAt = performance.now();
    while (this.workers.some(({ ended }) => !ended) && performance.now() - startedAt < STEP_LIMIT_MS) {
      await pause(LOOK_MS);
    }
  }

  private async killOne(second: number, inSeconds: number): Promise<void> {
    const worker = await this.standingIn(second, inSeconds);
    worker.expected = true;
    worker.child.kill('SIGKILL');
    this.say(worker, `killed (SIGKILL) in the middle: ${worker.paid} merchants are paid`, second, 'fault');
    await this.until(`${worker.label} is dead`, () => worker.ended, STEP_LIMIT_MS);
  }

  /** Kills a server, and starts it again with what it had. What was due meanwhile is late, and not lost. */
  private async takeAway(store: Store): Promise<void> {
    const { name } = store;
    const { seconds } = this.scene.outages;
    const tell = (text: string): void => this.timeline.happened({ node: name, text, tone: 'fault' });
    await store.down();
    tell(`the server is killed (SIGKILL), and away for ${seconds} s`);
    const settled = this.settled.size;
    const downAt = performance.now();
    const isOver = (): boolean => performance.now() - downAt >= seconds * 1_000;
    await this.until('the outage is over', isOver, seconds * 1_000 + STEP_LIMIT_MS);
    await store.up();
    tell(`the server is back; meanwhile ${this.settled.size - settled} occurrences were settled`);
    const before = this.settled.size;
    await this.until(`work goes on with ${name}`, () => this.settled.size > before, STEP_LIMIT_MS);
  }

  private async stopOne(second: number, inSeconds: number): Promise<void> {
    const worker = await this.standingIn(second, inSeconds);
    const stoppedAt = performance.now();
    worker.tell({ type: 'answer', second, then: 'stop' });
    await this.until(`${worker.label} is stopped`, () => worker.stopping, STEP_LIMIT_MS);
    this.say(worker, `stopped (SIGSTOP) in the middle: ${worker.paid} merchants are paid`, second, 'fault');
    const over = this.scene.guarded
      ? () => this.takers.has(second)
      : () => performance.now() - stoppedAt >= UNGUARDED_STOP_MS;
    await this.until(`the run of ${worker.label} was taken over`, over, STEP_LIMIT_MS);
    worker.child.kill('SIGCONT');
    this.say(worker, 'continued (SIGCONT), and goes on where it was', second, 'fault');
    const done = (): boolean =>
      this.scene.guarded ? worker.refused.has('finish') : worker.settled.has(second);
    await this.until(`the careless run of ${worker.label} has ended`, done, STEP_LIMIT_MS);
  }

  private async standingIn(second: number, inSeconds: number): Promise<Cast> {
    const found = (): boolean => this.standing.has(second);
    await this.until('a worker is in the middle of its run', found, inSeconds * 1_000 + STEP_LIMIT_MS);
    return this.standing.get(second) as Cast;
  }

  private async until(what: string, isSo: () => boolean, limitMs: number): Promise<void> {
    const startedAt = performance.now();
    while (!isSo()) {
      this.signal.throwIfAborted();
      if (this.problem !== undefined) throw new Error(this.problem);
      const waitedMs = performance.now() - startedAt;
      if (waitedMs > limitMs) throw new Error(`waited ${Math.round(waitedMs)} ms in vain until ${what}`);
      await pause(LOOK_MS);
    }
  }

  private hire(label: string): Cast {
    const { file, guarded, backends } = this.scene;
    const worker = new Cast({ label, file, guarded, backends });
    worker.child.on('message', (report) => this.hear(worker, report as Report));
    worker.child.on('error', (error) => {
      if (!worker.expected) this.problem = `${label}: ${error.message}`;
    });
    worker.child.on('exit', (code, signal) => {
      worker.ended = true;
      if (code !== 0 && !worker.expected) this.problem = `${label} ended by itself (${signal ?? code})`;
    });
    return worker;
  }

  private hear(worker: Cast, report: Report): void {
    switch (report.type) {
      case 'ready':
        worker.ready = true;
        return;
      case 'began':
        return this.began(worker, report);
      case 'halfway':
        // The first to be there is the one that the scene is about; the others go on.
        if (!this.standing.has(report.second)) {
          worker.paid = report.paid;
          this.standing.set(report.second, worker);
        } else worker.tell({ type: 'answer', second: report.second, then: 'go-on' });
        return;
      case 'stopping':
        worker.stopping = true;
        return;
      case 'settled': {
        this.settled.add(report.second);
        worker.settled.add(report.second);
        const text = `settled: ${report.merchants} merchants, ${money(report.cents)}`;
        return this.say(worker, text, report.second, this.takers.has(report.second) ? 'takeover' : 'plain');
      }
      case 'refused':
        this.refusedWrites += 1;
        worker.refused.add(report.what);
        return this.say(worker, `${report.what} refused: ${report.reason}`, report.second, 'fault');
      case 'trouble':
        return this.say(worker, report.message, report.second, 'quiet');
    }
  }

  private began(worker: Cast, { second, owed, takeover }: Extract<Report, { type: 'began' }>): void {
    if (!takeover) return;
    this.takers.set(second, worker);
    const from = this.standing.get(second)?.label ?? 'a worker';
    this.say(worker, `took over from ${from}: ${owed} merchants are left to pay`, second, 'takeover');
  }

  private say({ label: node }: Cast, text: string, second: number | undefined, tone: Tone): void {
    this.timeline.happened({ node, text, second, tone });
  }
}

/** One worker as the director sees it. */
class Cast {
  readonly label: string;
  readonly child: ChildProcess;
  readonly settled = new Set<number>();
  readonly refused = new Set<string>();
  ready = false;
  /** Merchants it had paid when it stood still. */
  paid = 0;
  stopping = false;
  ended = false;
  /** Its end is part of the scene. */
  expected = false;

  constructor(config: WorkerConfig) {
    this.label = config.label;
    const program = fileURLToPath(new URL('./worker.js', import.meta.url));
    this.child = fork(program, [JSON.stringify(config)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  }

  tell(order: Order): void {
    if (this.child.connected) this.child.send(order);
  }
}
