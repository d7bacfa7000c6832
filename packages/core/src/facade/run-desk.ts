/**
 * Records and people's decisions about them. A decision about a run that is running takes the run's lock first: only
 * who holds a newer grant knows that nobody works on it.
 */
import type { CreateRunOptions, DecisionOptions, RunListOptions, RunsApi, RunView } from '../api/run.js';
import type { Decision, RunMove } from '../machine/run-move.js';
import type { RunEvent, RunRecord, StoredRun } from '../machine/run-record.js';
import type { RunQuery, RunRef, RunStore } from '../port/run-store.js';
import type { HeldLock } from '../runtime/lock/lock-service.js';
import { closedError } from '../runtime/lock/lock-errors.js';
import type { CreatableRuns, PreparedCreate } from '../runtime/run/run-book.js';
import { lockKeyOf } from '../runtime/run/active-runs.js';
import { orphansOf, type RunHost, workerUnder } from '../runtime/run/run-host.js';
import { callersKey, checkKeyLength } from '../runtime/run/run-identity.js';
import { jsonCodec, jsonText, keepValue } from '../runtime/run/run-values.js';
import { parseDuration } from '../value/duration.js';
import { GuardError, invalidArgument } from '../value/error.js';
import { encodeKey, type Key } from '../value/key.js';
import { checkOptions } from '../value/options.js';

const STATES: readonly RunRecord['state'][] = [
  'pending',
  'running',
  'completed',
  'failed',
  'on-hold',
  'expired',
  'skipped',
];
const MAX_LIST = 1_000;
const MAX_NOTE = 2_000;
/** How often a record may move under a decision. */
const MAX_ROUNDS = 5;
const DESK_TTL_MS = 30_000;

/** The records of one guard, for people. */
export class RunDesk implements RunsApi, CreatableRuns {
  constructor(
    private readonly host: RunHost,
    private readonly minTtlMs: number,
  ) {}

  async get(task: string, key: Key): Promise<RunView | null> {
    this.checkOpen();
    const stored = await this.host.book.get(refOf(task, key));
    const [view] = stored === null ? [] : await this.viewsOf([stored]);
    return view ?? null;
  }

  async list(
    options: RunListOptions = {},
  ): Promise<{ readonly runs: readonly RunView[]; readonly cursor?: string }> {
    const query = queryOf(options);
    this.checkOpen();
    const { book, namespace } = this.host;
    const page = await book.repeated('listing runs', {}, () =>
      book.asked((store) => store.list(namespace, query)),
    );
    const runs = await this.viewsOf(page.runs);
    return page.cursor === undefined ? { runs } : { runs, cursor: page.cursor };
  }

  async history(task: string, key: Key): Promise<readonly RunEvent[]> {
    this.checkOpen();
    return this.host.book.events(refOf(task, key));
  }

  async create(
    task: string,
    options: CreateRunOptions = {},
  ): Promise<{ readonly created: boolean; readonly run: RunRecord }> {
    const answer = await this.host.book.create(await this.creation(task, options));
    return { created: answer.created, run: answer.stored.run };
  }

  get store(): RunStore {
    return this.host.book.store;
  }

  async prepareCreate(
    task: string,
    options: CreateRunOptions = {},
    askTime?: () => Promise<number>,
  ): Promise<PreparedCreate> {
    return this.host.book.prepareCreate(await this.creation(task, options, askTime));
  }

  retry(task: string, key: Key, options: DecisionOptions): Promise<RunRecord> {
    return this.decide(task, key, 'retry', options);
  }

  complete(
    task: string,
    key: Key,
    options: DecisionOptions & { readonly value?: unknown },
  ): Promise<RunRecord> {
    return this.decide(task, key, 'complete', options);
  }

  fail(task: string, key: Key, options: DecisionOptions): Promise<RunRecord> {
    return this.decide(task, key, 'fail', options);
  }

  async waive(task: string, key: Key, options: DecisionOptions): Promise<RunRecord> {
    const note = noteOf('waive options', options, ['note']);
    return this.moved(refOf(task, key), () => ({ type: 'waive', note }));
  }

  private async creation(
    task: string,
    options: CreateRunOptions,
    askTime?: () => Promise<number>,
  ): Promise<RunMove & { type: 'create' }> {
    checkOptions('create options', options, ['key', 'input', 'after']);
    const name = encodeKey('task', task);
    const keyed = options.key === undefined ? {} : { keyed: true };
    const { random, time, namespace } = this.host;
    const key = options.key === undefined ? random.id() : callersKey(this.host, name, options.key);
    checkKeyLength(namespace, name, key);
    const text = jsonText('input', options.input);
    const input = text === undefined ? {} : { input: text };
    const afterMs = options.after === undefined ? 0 : parseDuration('after', options.after, { minMs: 0 });
    this.checkOpen();
    const availableAtMs = (await time.now(askTime)) + afterMs;
    const run = { task: name, key, id: random.id(), trigger: 'manual', ...keyed, ...input } as const;
    return { type: 'create', run, availableAtMs };
  }

  private async decide(
    task: string,
    key: Key,
    decision: Decision,
    options: DecisionOptions & { readonly value?: unknown },
  ): Promise<RunRecord> {
    const note = noteOf(
      `${decision} options`,
      options,
      decision === 'complete' ? ['note', 'value'] : ['note'],
    );
    const ref = refOf(task, key);
    const definition = this.host.tasks.get(ref.task);
    const { problem, ...kept } = keepValue(options.value, definition?.policy.codec ?? jsonCodec);
    if (problem !== undefined || kept.valueOmitted) {
      throw invalidArgument('value', options.value, 'must be JSON of at most 64 KiB');
    }
    const { node } = this.host;
    return this.moved(ref, (run, lock) => {
      const compensate = definition?.workFor(run.input).compensate !== undefined;
      const by = lock === undefined ? {} : { by: workerUnder(this.host, lock.fullKey, lock) };
      return { type: 'decide', decision, note, node, compensate, ...by, ...kept };
    });
  }

  /** Moves a record, under its lock where it is running, and again where it moved meanwhile. */
  private async moved(
    ref: RunRef,
    wish: (run: RunRecord, lock: HeldLock | undefined) => RunMove,
  ): Promise<RunRecord> {
    this.checkOpen();
    await this.host.time.now();
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const stored = await this.host.book.get(ref);
      if (stored === null) throw notThere(ref);
      const lock = stored.run.state === 'running' ? await this.lockOf(stored.run) : undefined;
      try {
        const moved = await this.host.book.move(stored, wish(stored.run, lock));
        if (moved.status === 'moved') return moved.stored.run;
        if (moved.status === 'refused') throw notAllowed(stored.run, moved.why);
      } finally {
        await lock?.release();
      }
    }
    throw new GuardError('unavailable', `run ${ref.key} of ${ref.task} changes all the time: look again`);
  }

  /** Work that still runs while the guard closes may look and decide; afterwards nobody does. */
  private checkOpen(): void {
    if (this.host.shutdown.over) throw closedError();
  }

  private async lockOf(run: RunRecord): Promise<HeldLock> {
    const ttlMs = Math.max(DESK_TTL_MS, this.minTtlMs);
    const shownKey = `${run.task} ${run.key}`;
    const key = lockKeyOf(this.host.namespace, run);
    const signal = this.host.stopSignal;
    const request = { key, shownKey, ttlMs, waitMs: 0, renewMs: ttlMs / 3, signal };
    const outcome = await this.host.locks.claim(request);
    if (outcome.status === 'granted') return outcome.lock;
    const message = `run ${run.key} of ${run.task} is running, and somebody holds its lock`;
    throw new GuardError('lock-busy', message, { key: run.key });
  }

  private async viewsOf(stored: readonly StoredRun[]): Promise<readonly RunView[]> {
    const orphaned = await orphansOf(
      this.host,
      stored.map(({ run }) => run),
    );
    return stored.map(({ run }) => ({ run, orphaned: orphaned.has(run) }));
  }
}

function refOf(task: string, key: Key): RunRef {
  return { task: encodeKey('task', task), key: encodeKey('key', key) };
}

function queryOf(options: RunListOptions): RunQuery {
  checkOptions('list options', options, ['task', 'states', 'limit', 'cursor']);
  const { task, states, limit = 100, cursor } = options;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIST) {
    throw invalidArgument('limit', limit, `must be a whole number from 1 to ${MAX_LIST}`);
  }
  for (const state of states ?? []) {
    if (!STATES.includes(state))
      throw invalidArgument('states', state, `must be some of ${STATES.join(', ')}`);
  }
  return {
    limit,
    ...(task === undefined ? {} : { task: encodeKey('task', task) }),
    ...(states === undefined ? {} : { states }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

/**
 * The note of a decision.
 *
 * @throws GuardError `invalid-argument`: there is none, or it is too long.
 */
export function noteOf(argument: string, options: DecisionOptions, known: readonly string[]): string {
  checkOptions(argument, options, known);
  const note: unknown = (options as Partial<DecisionOptions> | undefined)?.note;
  if (typeof note === 'string' && note.trim() !== '' && note.length <= MAX_NOTE) return note;
  throw invalidArgument('note', note, `must say why, in at most ${MAX_NOTE} characters`);
}

function notThere(ref: RunRef): GuardError {
  return new GuardError('invalid-argument', `there is no run ${ref.key} of ${ref.task}`, { key: ref.key });
}

function notAllowed(run: RunRecord, why: string): GuardError {
  const message = `run ${run.key} of ${run.task} is ${run.state}: the decision is not possible (${why})`;
  return new GuardError('invalid-argument', message, { key: run.key });
}
