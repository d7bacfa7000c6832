/**
 * A run store on any state store, with nothing asked of it but that each key is atomic. A run is one entry that holds
 * record and history together, and two index entries that are hints (see `index-entry.ts`): so every change that
 * counts is one compare-and-set of one key, and an uncontended create, move or finish is one call.
 */
import type { RunEvent, RunRecord, StoredRun } from '../machine/run-record.js';
import type { Random } from '../port/clock.js';
import type {
  CreateAnswer,
  DueQuery,
  NodeRecord,
  PruneQuery,
  RunPage,
  RunQuery,
  RunRef,
  RunStore,
  StoredTask,
  TaskRecord,
  TransitionAnswer,
} from '../port/run-store.js';
import type { StateStore } from '../port/state-store.js';
import { systemRandom } from '../runtime/random.js';
import { invalidArgument } from '../value/error.js';
import { dueRuns } from './due.js';
import { listedRuns } from './list.js';
import { Pruner } from './prune.js';
import { Records, shown } from './records.js';
import { Registry } from './registry.js';

/** Options of a run store on a state store. */
export interface KvRunsOptions {
  /** Names the writes that have no name yet. Default: the system's cryptographic source. */
  readonly random?: Random;
}

/**
 * Keeps runs in a state store, in the section of runs of each namespace. A run's history keeps its first line and the
 * newest 127 (progress goes first), and the last 512 writes beyond those are still recognised as done (S4). Closing
 * it leaves the state store open.
 *
 * @throws GuardError `invalid-argument`: not a state store.
 */
export function kvRuns(state: StateStore, options: KvRunsOptions = {}): RunStore {
  checkState(state);
  return new KvRuns(state, options.random ?? systemRandom);
}

function checkState(state: unknown): void {
  const given = state as Partial<StateStore> | null | undefined;
  const calls = ['now', 'read', 'write', 'scan'] as const;
  const hasAll = calls.every((call) => typeof given?.[call] === 'function');
  if (hasAll && typeof given?.traits === 'object') return;
  throw invalidArgument('state', state, 'must be a state store, as redisState or etcdState make one');
}

class KvRuns implements RunStore {
  readonly name: string;
  readonly traits: RunStore['traits'];

  readonly #state: StateStore;
  readonly #records: Records;
  readonly #pruner: Pruner;
  readonly #registry: Registry;

  constructor(state: StateStore, random: Random) {
    this.name = state.name;
    const { ttlGranularityMs } = state.traits;
    this.traits = {
      createRunning: true,
      ...(ttlGranularityMs === undefined ? undefined : { ttlGranularityMs }),
    };
    this.#state = state;
    this.#records = new Records(state);
    this.#pruner = new Pruner(state, this.#records);
    this.#registry = new Registry(state, random);
  }

  now(): Promise<number> {
    return this.#state.now();
  }

  create(namespace: string, run: RunRecord, event: RunEvent): Promise<CreateAnswer> {
    return this.#records.create(namespace, run, event);
  }

  async get(namespace: string, ref: RunRef): Promise<StoredRun | null> {
    const kept = await this.#records.read(namespace, ref);
    return kept === null ? null : shown(kept);
  }

  transition(
    namespace: string,
    expected: string,
    next: RunRecord,
    event: RunEvent,
  ): Promise<TransitionAnswer> {
    return this.#records.move(namespace, expected, next, event);
  }

  due(namespace: string, query: DueQuery): Promise<RunPage> {
    return dueRuns(this.#state, this.#records, namespace, query);
  }

  list(namespace: string, query: RunQuery): Promise<RunPage> {
    return listedRuns(this.#state, this.#records, namespace, query);
  }

  prune(namespace: string, query: PruneQuery): Promise<number> {
    return this.#pruner.prune(namespace, query);
  }

  async events(namespace: string, ref: RunRef): Promise<readonly RunEvent[]> {
    return (await this.#records.read(namespace, ref))?.history.events ?? [];
  }

  task(namespace: string, task: string): Promise<StoredTask | null> {
    return this.#registry.task(namespace, task);
  }

  putTask(namespace: string, expected: string | null, next: TaskRecord): Promise<string | null> {
    return this.#registry.putTask(namespace, expected, next);
  }

  putNode(namespace: string, node: NodeRecord, ttlMs: number): Promise<void> {
    return this.#registry.putNode(namespace, node, ttlMs);
  }

  removeNode(namespace: string, id: string): Promise<void> {
    return this.#registry.removeNode(namespace, id);
  }

  nodes(namespace: string): Promise<readonly NodeRecord[]> {
    return this.#registry.nodes(namespace);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
