/** Records and lines of history, as tests of the run store want them. */
import type { CreateAnswer, RunEvent, RunRecord, RunStatus, RunStore, StoredRun } from '@guard/core';

export const NAMESPACE = 'ns';

let writes = 0;

/** A pending record, created and due at `atMs`. */
export function record(key: string, over: Partial<RunRecord> = {}, atMs = 1_000): RunRecord {
  return {
    ...{ task: 'settlement', key, id: `run ${key}`, attempt: 1, takeovers: 0, trigger: 'call' },
    ...{ createdAtMs: atMs, updatedAtMs: atMs, state: 'pending', availableAtMs: atMs },
    ...over,
  } as RunRecord;
}

/** A line of history with a write id of its own. */
export function line(what = 'moved', over: Partial<RunEvent> = {}): RunEvent {
  writes += 1;
  return { writeId: `write ${writes}`, atMs: 1, what, from: 'none', to: 'pending', attempt: 1, ...over };
}

/** A record that must be created. */
export async function created(store: RunStore, run: RunRecord, event = line()): Promise<StoredRun> {
  return shown(await store.create(NAMESPACE, run, event));
}

/** The record of an answer that must be `created`. */
export function shown(answer: CreateAnswer): StoredRun {
  if (answer.status === 'created') return answer.stored;
  throw new Error(`expected created, got ${answer.status}`, {
    cause: 'cause' in answer ? answer.cause : undefined,
  });
}

/** A move that must succeed. */
export async function moved(
  store: RunStore,
  { run, version }: StoredRun,
  status: RunStatus,
  event = line(),
): Promise<StoredRun> {
  const { task, key, id, attempt, takeovers, trigger, createdAtMs, updatedAtMs } = run;
  const base = { task, key, id, attempt, takeovers, trigger, createdAtMs, updatedAtMs };
  const answer = await store.transition(NAMESPACE, version, { ...base, ...status }, event);
  if (answer.status === 'moved') return answer.stored;
  throw new Error(`expected moved, got ${answer.status}`, {
    cause: 'cause' in answer ? answer.cause : undefined,
  });
}

/** Spoils a column of one of Guard's tables; `set` says which, behind `UPDATE guard_`. */
type Spoil = (set: string, text: string) => unknown;

/** A line of a history, a task and a node that something else wrote are named where they are read (S6). */
export async function expectNamed(runs: RunStore, spoil: Spoil): Promise<void> {
  const { run } = await created(runs, record('k'));
  await runs.putTask(NAMESPACE, null, { task: 'settlement' });
  await runs.putNode(NAMESPACE, { id: 'n', label: 'n', startedAtMs: 1, tasks: [] } as never, 60_000);
  for (const spoiled of ['{', 'null']) {
    for (const set of ['run_event SET event', 'task SET record', 'node SET record'])
      await spoil(set, spoiled);
    for (const [named, read] of [
      ['a line of the history of run k of settlement', () => runs.events(NAMESPACE, run)],
      ['the record of task settlement', () => runs.task(NAMESPACE, 'settlement')],
      ['the record of a node', () => runs.nodes(NAMESPACE)],
    ] as const) {
      const message = expect.stringContaining(`${named} cannot be read: something else than a guard`);
      await expect(read()).rejects.toMatchObject({ code: 'unavailable', message });
    }
  }
}
