/**
 * A run store on a state store that a test can look into: how many calls were made, and in which way batches are
 * carried out. The loose store keeps only what the port promises: each key for itself, in any order, with others in
 * between, and possibly only some of a batch.
 */
import {
  kvRuns,
  memoryState,
  type RunEvent,
  type RunRecord,
  type RunStore,
  type StateStore,
  type StateWrite,
  type StoredRun,
  type WriteAnswer,
} from '@guard/core';
import { type SeededRandom, VirtualClock } from '@guard/testing';

export const NS = 'ns';

/** A store that counts its calls. */
export interface Counted {
  readonly state: StateStore;
  readonly calls: string[];
}

/** Counts what reaches a store. */
export function counted(inner: StateStore): Counted {
  const calls: string[] = [];
  const state: StateStore = {
    ...{ name: inner.name, traits: inner.traits, now: () => inner.now() },
    read: (keys) => {
      calls.push('read');
      return inner.read(keys);
    },
    write: (writes) => {
      calls.push('write');
      return inner.write(writes);
    },
    scan: (...args) => {
      calls.push('scan');
      return inner.scan(...args);
    },
    watch: (...args) => inner.watch(...args),
    close: () => inner.close(),
  };
  return { state, calls };
}

/** What a loose store does before it carries out one operation; a promise that never settles is a crash. */
export type Before = (what: string) => Promise<void>;

/** A store whose batches are nothing but operations, carried out one by one in an order of chance. */
export function loose(inner: StateStore, random: SeededRandom, before: Before): StateStore {
  return {
    ...{ name: inner.name, traits: { ...inner.traits, atomicBatch: false } },
    now: () => inner.now(),
    read: async (keys) => {
      const entries = [];
      for (const key of keys) {
        await before(`read ${key}`);
        entries.push(...(await inner.read([key])));
      }
      return entries;
    },
    write: async (writes) => {
      const answers = new Map<StateWrite, WriteAnswer>();
      const shuffled = writes.map((write) => ({ write, place: random.fraction() }));
      for (const { write } of shuffled.sort((a, b) => a.place - b.place)) {
        await before(`write ${write.key}`);
        answers.set(write, (await inner.write([write]))[0]!);
      }
      return writes.map((write) => answers.get(write)!);
    },
    scan: async (...args) => {
      await before(`scan ${args[0]}`);
      return inner.scan(...args);
    },
    watch: (...args) => inner.watch(...args),
    close: () => inner.close(),
  };
}

/** What most tests need: a clock, a store under it, a run store, and records to write. */
export class Stage {
  readonly clock = new VirtualClock();
  readonly inner = memoryState({ clock: this.clock });
  readonly counted: Counted = counted(this.inner);
  readonly runs: RunStore = kvRuns(this.counted.state);
  #ids = 0;

  /** The number of calls of the state store that `work` makes. */
  async callsOf<T>(work: () => Promise<T>): Promise<[T, string[]]> {
    this.counted.calls.length = 0;
    const value = await work();
    return [value, [...this.counted.calls]];
  }

  get nowMs(): number {
    return this.clock.now().wallMs;
  }

  event(to: RunRecord['state'], over: Partial<RunEvent> = {}): RunEvent {
    this.#ids += 1;
    return {
      ...{ writeId: `w${this.#ids}`, atMs: this.nowMs, what: 'step', from: 'none', to, attempt: 1 },
      ...over,
    };
  }

  /** A pending record; `over` makes it anything else. */
  pending(over: Partial<RunRecord> = {}): RunRecord {
    const at = this.nowMs;
    const run = {
      ...{ task: 't', key: 'k', id: 'id', attempt: 0, takeovers: 0, trigger: 'call' },
      ...{ createdAtMs: at, updatedAtMs: at, state: 'pending', availableAtMs: at },
      ...over,
    };
    return run as RunRecord;
  }

  running(over: Partial<RunRecord> = {}): RunRecord {
    const lock = { backend: 'memory', key: 'ns/task/t', token: '5' };
    return this.pending({
      ...{ state: 'running', lock, node: { id: 'n1', label: 'one' }, startedAtMs: this.nowMs },
      ...over,
    });
  }

  completed(over: Partial<RunRecord> = {}): RunRecord {
    const node = { id: 'n1', label: 'one' };
    return this.pending({
      ...{ state: 'completed', finishedAtMs: this.nowMs, node, value: '"value"' },
      ...over,
    });
  }

  failed(over: Partial<RunRecord> = {}): RunRecord {
    const fault = { name: 'Error', message: 'no money' };
    return this.pending({ state: 'failed', finishedAtMs: this.nowMs, fault, ...over });
  }

  async create(run: RunRecord, runs = this.runs): Promise<StoredRun> {
    const answer = await runs.create(NS, run, this.event(run.state));
    if (answer.status !== 'created') throw new Error(`expected a new record, got ${answer.status}`);
    return answer.stored;
  }

  async move(expected: StoredRun, next: RunRecord, event = this.event(next.state)): Promise<StoredRun> {
    const answer = await this.runs.transition(NS, expected.version, next, event);
    if (answer.status !== 'moved') throw new Error(`expected a move, got ${answer.status}`);
    return answer.stored;
  }

  async due(over: Partial<Parameters<RunStore['due']>[1]> = {}, runs = this.runs): Promise<RunRecord[]> {
    const page = await runs.due(NS, { tasks: ['t'], overdueMs: 0, limit: 100, ...over });
    return page.runs.map(({ run }) => run);
  }
}
