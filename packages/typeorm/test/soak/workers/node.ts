/**
 * A node under soak: tasks with schedules on one store, until SIGTERM. It tells of every body, every takeover and every
 * refused write, by the monotonic clock that all processes of the machine share.
 *
 * Faults are played in the middle of runs, where they do harm: a body whose instant the plan names says so, and stands.
 * Where it is to be stopped it blocks its loop until that has happened, so that no statement is under way: who is
 * stopped within a transaction stops everybody else on that SQLite file too, with or without a guard.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CatchUp, createGuard, currentLock, type Run } from '@guard/core';
import { SharedHoldLog, type WorkerMain } from '@guard/testing';
import { openStore, type SoakStore } from '../store.js';

/** A task of every node. */
export interface SoakTask {
  readonly name: string;
  readonly everyMs: number;
  readonly catchUp: CatchUp;
}

/** What a node is. */
export interface NodeInput {
  readonly store: SoakStore;
  readonly label: string;
  readonly log: string;
  readonly tasks: readonly SoakTask[];
  readonly ttlMs: number;
  readonly sweepMs: number;
  readonly bodyMs: number;
  /** How long an occurrence waits for the one before it. */
  readonly waitMs: number;
  /** Seconds of ten in whose occurrences it stands, to be killed or stopped. */
  readonly faults: Readonly<Record<number, Halt>>;
}

/** How a body comes to a halt. */
export type Halt = 'kill' | 'stop';

/** What a node tells. */
export interface Told {
  readonly what: 'started' | 'begin' | 'end' | 'refused' | 'taken over' | 'passed over' | 'error' | Halt;
  readonly atMs: number;
  readonly task?: string;
  readonly key?: string;
  readonly trigger?: Run['trigger'];
  readonly text?: string;
}

const STAND_MS = 5_000;
/** A wait of five milliseconds that took so long was a stop. */
const STOPPED_MS = 1_000;

const main: WorkerMain<NodeInput> = async ({ input, tell }) => {
  const { store, label, tasks, ttlMs, sweepMs, waitMs } = input;
  const { locks, runs, close } = await openStore(store);
  const say = (what: Told['what'], more: Omit<Told, 'what' | 'atMs'> = {}): Promise<void> =>
    tell({ what, atMs: machineMs(), ...more } satisfies Told);
  const guard = createGuard({
    ...{ locks, runs, node: { label } },
    ...{ defaults: { ttl: ttlMs }, sweepInterval: sweepMs, grace: '2s' },
  });
  guard.on('run-taken-over', ({ run: { task, key } }) => void say('taken over', { task, key }));
  guard.on('run-refused', ({ run: { task, key }, reason }) => {
    void say('refused', { task, key, text: reason });
  });
  guard.on('run-expired', ({ run: { task, key } }) => void say('passed over', { task, key }));
  guard.on('error', ({ error, during }) => void say('error', { text: `${during}: ${String(error)}` }));
  const work = new Work(input, say);
  for (const { name, everyMs, catchUp } of tasks)
    guard.task(name, { every: everyMs, catchUp, wait: waitMs }, (run) => work.run(run));
  const ended = new Promise<void>((resolve) => process.once('SIGTERM', resolve));
  await guard.start();
  await say('started');
  await ended;
  await guard.close();
  await close();
};
export default main;

/** The bodies of one node. */
class Work {
  readonly #log: SharedHoldLog;

  constructor(
    private readonly input: NodeInput,
    private readonly say: (what: Told['what'], more: Omit<Told, 'what' | 'atMs'>) => Promise<void>,
  ) {
    this.#log = new SharedHoldLog(input.log);
  }

  async run(run: Run): Promise<void> {
    const { task, key, trigger } = run;
    const lock = currentLock()!;
    const holder = `${this.input.label} ${key} ${lock.token}`;
    this.#log.enter(holder, lock);
    await this.say('begin', { task, key, trigger });
    const halt = this.#haltOf(run);
    if (halt === 'kill') await this.#stand(run);
    if (halt === 'stop') await this.#stopHere(run);
    await sleep(this.input.bodyMs);
    // One that was stopped for longer than its lease has to know it before it believes anything again [S1].
    this.#log.add(lock.isHeld() ? 'held' : 'lost', holder, lock.key);
    await this.say('end', { task, key, trigger });
    this.#log.add('exit', holder, lock.key);
  }

  /** Somebody kills this process here. */
  async #stand({ task, key, trigger, signal }: Run): Promise<void> {
    await this.say('kill', { task, key, trigger });
    await sleep(60_000, undefined, { signal }).catch(() => undefined);
  }

  async #stopHere({ task, key, trigger }: Run): Promise<void> {
    await this.say('stop', { task, key, trigger });
    standUntilStopped();
  }

  /** Only who runs an occurrence for the first time comes to harm in it. */
  #haltOf({ scheduledFor, trigger }: Run): Halt | undefined {
    if (scheduledFor === undefined || (trigger !== 'cron' && trigger !== 'catch-up')) return undefined;
    return this.input.faults[Math.floor(scheduledFor.getTime() / 1_000) % 10];
  }
}

/** Blocks this process until it was stopped and went on; for five seconds at most. */
function standUntilStopped(): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const endMs = machineMs() + STAND_MS;
  for (let beforeMs = machineMs(); beforeMs < endMs; beforeMs = machineMs()) {
    Atomics.wait(cell, 0, 0, 5);
    if (machineMs() - beforeMs > STOPPED_MS) return;
  }
}

function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
