/**
 * The processes of one scene, and what they told. Plays the faults where a body stands for them: a killed process is
 * replaced at once, a stopped one goes on after three leases.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard, type Guard, type RunRecord } from '@guard/core';
import { SharedHoldLog, startWorker, type WorkerProcess } from '@guard/testing';
import { openStore, type SoakStore } from './store.js';
import type { NodeInput, Told } from './workers/node.js';

/** What a node told, and which one. */
export interface Heard extends Told {
  readonly node: string;
}

/** A fault that was played in the middle of a run. */
export interface Played {
  readonly what: 'kill' | 'stop';
  readonly node: string;
  readonly task: string;
  readonly key: string;
  /** When it began, by the machine's monotonic clock. */
  readonly atMs: number;
}

/** What all nodes of a scene have in common. */
export type ClusterOptions = Omit<NodeInput, 'label' | 'store'>;

interface Node {
  readonly label: string;
  readonly wallShiftMs: number;
  readonly worker: WorkerProcess;
}

const LEASES_STOPPED = 3;
const ENDS_WITHIN_MS = 20_000;

/** Nodes on one store. */
export class Cluster {
  readonly heard: Heard[] = [];
  readonly played: Played[] = [];
  /** What went wrong with the processes, not with the schedules. */
  readonly problems: string[] = [];
  readonly log: SharedHoldLog;
  readonly #nodes = new Set<Node>();
  readonly #busy = new Set<Promise<void>>();
  #ending = false;
  #started = 0;

  constructor(
    private readonly store: SoakStore,
    private readonly options: ClusterOptions,
  ) {
    this.log = new SharedHoldLog(options.log);
  }

  /** Starts a node whose wall clock is off by so much; resolves when it follows its schedules. */
  async start(wallShiftMs: number): Promise<void> {
    const { store, options } = this;
    const label = `node-${(this.#started += 1)}`;
    const worker = startWorker(join(__dirname, 'workers', 'node.ts'), {
      input: { ...options, store, label } satisfies NodeInput,
      ...{ wallShiftMs, log: this.log, exitWithinMs: 10_000 },
    });
    const node = { label, wallShiftMs, worker };
    this.#nodes.add(node);
    const started = new Promise<void>((resolve, reject) => {
      const listening = this.#listen(node, resolve).catch((error: Error) => {
        reject(error);
        throw error;
      });
      this.#hold(listening);
    });
    await started;
  }

  /** Kills every node at once. */
  async killAll(): Promise<void> {
    await Promise.all([...this.#nodes].map((node) => this.#kill(node)));
  }

  /** Ends every node as an application would, and notes what went wrong in one. */
  async end(): Promise<void> {
    this.#ending = true;
    // A fault that is being played comes to its end first.
    while (this.#busy.size > this.#nodes.size) await sleep(50);
    const nodes = [...this.#nodes];
    for (const { worker } of nodes) worker.signal('SIGTERM');
    await Promise.all(nodes.map((node) => this.#finished(node)));
  }

  /** Ends whatever is still there. */
  async close(): Promise<void> {
    this.#ending = true;
    await Promise.all([...this.#nodes].map(({ worker }) => worker.kill()));
  }

  /** Looks at the store as any process of the application could. */
  async look<T>(at: (guard: Guard) => Promise<T>): Promise<T> {
    const { locks, runs, close } = await openStore(this.store);
    const guard = createGuard({ locks, runs });
    try {
      return await at(guard);
    } finally {
      await guard.close();
      await close();
    }
  }

  /** Every record of a task. */
  async records(task: string): Promise<readonly RunRecord[]> {
    return this.look(async (guard) => {
      const found: RunRecord[] = [];
      let cursor: string | undefined;
      do {
        const page = await guard.runs.list({ task, limit: 500, ...(cursor === undefined ? {} : { cursor }) });
        found.push(...page.runs.map(({ run }) => run));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return found;
    });
  }

  async #finished({ label, worker }: Node): Promise<void> {
    const late = new AbortController();
    const end = await Promise.race([
      worker.finish().catch((error: unknown) => String(error)),
      sleep(ENDS_WITHIN_MS, `${label} did not end within ${ENDS_WITHIN_MS} ms`, { signal: late.signal }),
    ]);
    late.abort();
    if (typeof end === 'string') this.problems.push(end);
  }

  async #listen(node: Node, started: () => void): Promise<void> {
    const { label, worker } = node;
    for (;;) {
      const told = await worker.next<Told>().catch((error: unknown) => {
        if (this.#nodes.has(node) && !this.#ending) throw error;
        return undefined;
      });
      if (told === undefined) return;
      this.heard.push({ ...told, node: label });
      if (told.what === 'started') started();
      if (told.what === 'kill' || told.what === 'stop') this.#hold(this.#play(node, told.what, told));
    }
  }

  async #play(node: Node, what: 'kill' | 'stop', { task = '', key = '', atMs }: Told): Promise<void> {
    if (what === 'kill') {
      if (this.#ending) return;
      this.played.push({ what, node: node.label, task, key, atMs });
      await this.#kill(node);
      return this.start(node.wallShiftMs);
    }
    await node.worker.pause();
    if (!this.#ending) {
      this.played.push({ what, node: node.label, task, key, atMs });
      await sleep(LEASES_STOPPED * this.options.ttlMs);
    }
    node.worker.resume();
  }

  async #kill(node: Node): Promise<void> {
    this.#nodes.delete(node);
    await node.worker.kill();
  }

  #hold(work: Promise<void>): void {
    this.#busy.add(work);
    work.catch((error: unknown) => this.problems.push(String(error))).finally(() => this.#busy.delete(work));
  }
}
