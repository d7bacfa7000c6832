/**
 * What the cases of a run store work with: namespaces of their own, records in every state, and moves with a fresh
 * write id for every wish.
 */
import {
  systemRandom,
  type RunEvent,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type RunStatus,
  type RunStore,
  type StoredRun,
} from '@guard/core';
import type { VirtualClock } from '../../clock/virtual-clock.js';
import { assert, expectStatus } from '../assert.js';
import { slackMs, type ContractCase, type Profile } from '../runner.js';
import { timelineOf, type Timeline } from '../timeline.js';

/** One place where runs are kept, made for one case. */
export interface RunPlace {
  readonly store: RunStore;
  /** A further, independent connection to the same place; for a store in memory the same object. */
  connect(): Promise<RunStore>;
  /** The clock that the place runs on, where that is a virtual one. Default: the real time. */
  readonly clock?: VirtualClock;
  /** Closes the connections, and removes what only the adapter knows how to find. */
  cleanup(): Promise<void>;
}

/** What a run store can do. */
export type RunTraits = RunStore['traits'];

/** A case about a run store. */
export type RunCase = ContractCase<RunKit, RunTraits>;

/** What a record may say beside its place. */
export type RunWish = Partial<Omit<RunRecord, keyof RunStatus>> & { readonly status?: RunStatus };

const NODE = { id: 'node-1', label: 'pod-7' };
const LOCK = { backend: 'contract', key: 'contract/task/t', token: '12345678901234567890' };

/** The stage of one case. */
export class RunKit {
  readonly store: RunStore;
  readonly time: Timeline;
  readonly profile: Profile;
  readonly namespace = `contract-${systemRandom.id()}`;
  readonly #place: RunPlace;
  #second: RunStore | undefined;

  constructor(place: RunPlace, profile: Profile) {
    this.#place = place;
    this.store = place.store;
    this.time = timelineOf(place.clock);
    this.profile = profile;
  }

  /** How late an answer about time may be. Some stores count in whole seconds. */
  get slackMs(): number {
    const { ttlGranularityMs = 0 } = this.store.traits;
    return slackMs(this.time) + Math.max(ttlGranularityMs, this.time.virtual ? 0 : 1_000);
  }

  /** A second connection to the same place; always the same one. */
  async second(): Promise<RunStore> {
    return (this.#second ??= await this.#place.connect());
  }

  /** A status in each state, as of `atMs`. */
  status(state: RunStatus['state'], atMs: number): RunStatus {
    switch (state) {
      case 'pending':
        return { state, availableAtMs: atMs };
      case 'running':
        return { state, lock: LOCK, node: NODE, startedAtMs: atMs, progress: '{"done":1}' };
      case 'completed':
        return { state, finishedAtMs: atMs, value: '{"total":"12.30"}', node: NODE };
      case 'failed':
        return { state, finishedAtMs: atMs, fault: { name: 'TypeError', message: 'no', code: 'E_NO' } };
      case 'on-hold':
        return { state, sinceMs: atMs, reason: 'too many takeovers' };
      case 'expired':
        return { state, finishedAtMs: atMs, reason: 'late', summary: { count: 3, fromMs: 1, toMs: atMs } };
      case 'skipped':
        return { state, finishedAtMs: atMs, reason: 'overlap', blockedBy: 'run-0' };
    }
  }

  /** A record, by default pending and due now. */
  async run(key: string, wish: RunWish = {}): Promise<RunRecord> {
    const nowMs = await this.store.now();
    const { status = this.status('pending', nowMs), ...base } = wish;
    return {
      task: 'settlement',
      key,
      id: systemRandom.id(),
      attempt: 1,
      takeovers: 0,
      trigger: 'call',
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      ...base,
      ...status,
    };
  }

  /** A line of history for the move to `to`. */
  event(to: RunStatus['state'], from: RunEvent['from'] = 'none', over: Partial<RunEvent> = {}): RunEvent {
    return { writeId: systemRandom.id(), atMs: 1, what: 'moved', from, to, attempt: 1, ...over };
  }

  /** A record that must be created. */
  async create(
    run: RunRecord,
    event = this.event(run.state),
    namespace = this.namespace,
  ): Promise<StoredRun> {
    const { stored } = expectStatus(await this.store.create(namespace, run, event), 'created', 'create');
    assert.deepEqual(stored.run, run);
    return stored;
  }

  /** A move that must be made. */
  async move({ run, version }: StoredRun, next: RunStatus, event?: RunEvent): Promise<StoredRun> {
    const record = this.next(run, next);
    const line = event ?? this.event(next.state, run.state);
    const answer = await this.store.transition(this.namespace, version, record, line);
    const { stored } = expectStatus(answer, 'moved', `the move to ${next.state}`);
    assert.deepEqual(stored.run, record);
    assert.notEqual(stored.version, version);
    return stored;
  }

  /** The same run in another state. */
  next(run: RunRecord, status: RunStatus): RunRecord {
    const { task, key, id, attempt, takeovers, trigger, createdAtMs, updatedAtMs } = run;
    return { task, key, id, attempt, takeovers, trigger, createdAtMs, updatedAtMs, ...status };
  }

  /** All pages of a listing. */
  pages(query: Omit<RunQuery, 'cursor'>, store = this.store): Promise<StoredRun[]> {
    return this.collect(query.limit, (cursor) =>
      store.list(this.namespace, cursor === undefined ? query : { ...query, cursor }),
    );
  }

  /** All pages of what is due. */
  due(tasks: readonly string[], overdueMs = 0, limit = 100): Promise<StoredRun[]> {
    const query = { tasks, overdueMs, limit };
    return this.collect(limit, (cursor) =>
      this.store.due(this.namespace, cursor === undefined ? query : { ...query, cursor }),
    );
  }

  private async collect(
    limit: number,
    page: (cursor: string | undefined) => Promise<RunPage>,
  ): Promise<StoredRun[]> {
    const found: StoredRun[] = [];
    let cursor: string | undefined;
    do {
      const { runs, cursor: next } = await page(cursor);
      assert.ok(runs.length <= limit, `a page of ${runs.length} for a limit of ${limit}`);
      found.push(...runs);
      cursor = next;
    } while (cursor !== undefined);
    return found;
  }

  close(): Promise<void> {
    return this.#place.cleanup();
  }
}

/** The keys of runs. */
export function keysOf(runs: readonly StoredRun[]): string[] {
  return runs.map(({ run }) => run.key);
}
