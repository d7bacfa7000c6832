/** What nodes know of tasks, changed by compare-and-set, and of each other, for as long as they announce themselves. */
import type { NodeRecord, StoredTask, TaskRecord } from '@guard/core';
import { integer, text } from '../row.js';
import { parsed, parseVersion, rowVersion, versionText } from '../run-rows.js';
import type { RunStatements } from '../statements/postgres-runs.js';
import type { Statements } from './statements.js';
import { plain, taskValues } from './run-values.js';

/** Tasks and nodes of one database. */
export class RunRegistry {
  readonly #statements: Statements;
  readonly #sql: RunStatements;

  constructor(statements: Statements, sql: RunStatements) {
    this.#statements = statements;
    this.#sql = sql;
  }

  /** See `RunStore.task`. */
  async task(namespace: string, task: string): Promise<StoredTask | null> {
    const [row] = await this.#statements.rows(this.#sql.readTask, [namespace, task]);
    if (row === undefined) return null;
    const record = parsed<TaskRecord>(() => text(row, 'record'), `the record of task ${task}`);
    return { record, version: versionText(rowVersion(row)) };
  }

  /** See `RunStore.putTask`. */
  async putTask(namespace: string, expected: string | null, next: TaskRecord): Promise<string | null> {
    const written = await (expected === null
      ? this.#create(namespace, next)
      : this.#move(namespace, expected, next));
    if (written !== null || next.writeId === undefined) return written;
    // An earlier sending may have been applied, and its answer lost (S4).
    const there = await this.task(namespace, next.task);
    return there?.record.writeId === next.writeId ? there.version : null;
  }

  /** See `RunStore.putNode`. Takes announcements that ended away. */
  async putNode(namespace: string, node: NodeRecord, ttlMs: number): Promise<void> {
    const { id, label, startedAtMs } = node;
    await this.#statements.rows(this.#sql.putNode, [
      ...[namespace, id, plain(label), plain(startedAtMs)],
      ...[Math.ceil(ttlMs), JSON.stringify(node)],
    ]);
    await this.#statements.rows(this.#sql.dropDeadNodes, [namespace]);
  }

  /** See `RunStore.removeNode`. */
  async removeNode(namespace: string, id: string): Promise<void> {
    await this.#statements.rows(this.#sql.removeNode, [namespace, id]);
  }

  /** See `RunStore.nodes`. */
  async nodes(namespace: string): Promise<readonly NodeRecord[]> {
    const rows = await this.#statements.rows(this.#sql.nodes, [namespace]);
    return rows.map((row) => parsed<NodeRecord>(() => text(row, 'record'), 'the record of a node'));
  }

  async #create(namespace: string, next: TaskRecord): Promise<string | null> {
    const values = [...taskValues(next), namespace, next.task];
    const [row] = await this.#statements.rows(this.#sql.createTask, values);
    return row === undefined ? null : versionText({ seq: integer(row, 'seq'), version: 1n });
  }

  async #move(namespace: string, expected: string, next: TaskRecord): Promise<string | null> {
    const version = parseVersion(expected);
    if (version === undefined) return null;
    const values = [
      ...taskValues(next),
      ...[namespace, next.task, String(version.seq), String(version.version)],
    ];
    const [row] = await this.#statements.rows(this.#sql.moveTask, values);
    return row === undefined ? null : versionText({ seq: version.seq, version: integer(row, 'version') });
  }
}
