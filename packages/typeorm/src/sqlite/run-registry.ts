/** What nodes know of tasks, changed by compare-and-set, and of each other, for as long as they announce themselves. */
import type { NodeRecord, StoredTask, TaskRecord } from '@guard/core';
import type { Connection } from '../connection.js';
import type { Lifetimes } from '../lifetime.js';
import { integer, text, type Row } from '../row.js';
import type { RunStatements } from '../statements/sqlite-runs.js';
import { lifetime } from './lock-rows.js';
import { parsed, parseVersion, rowVersion, taskColumns, versionText } from '../run-rows.js';

/** Tasks and nodes of one database. Every method runs inside a transaction of the caller, or is one read. */
export class RunRegistry {
  readonly #connection: Connection;
  readonly #lifetimes: Lifetimes;
  readonly #sql: RunStatements;

  constructor(connection: Connection, lifetimes: Lifetimes, statements: RunStatements) {
    this.#connection = connection;
    this.#lifetimes = lifetimes;
    this.#sql = statements;
  }

  /** See `RunStore.task`. */
  task(namespace: string, task: string): StoredTask | null {
    const raw = this.#connection.row(this.#sql.readTask, namespace, task);
    if (raw === undefined) return null;
    const record = parsed<TaskRecord>(() => text(raw, 'record'), `the record of task ${task}`);
    return { record, version: versionText(rowVersion(raw)) };
  }

  /** See `RunStore.putTask`. Runs in a write transaction. */
  putTask(namespace: string, expected: string | null, next: TaskRecord): string | null {
    const written = expected === null ? this.#create(namespace, next) : this.#move(namespace, expected, next);
    if (written !== null || next.writeId === undefined) return written;
    // An earlier sending may have been applied, and its answer lost (S4).
    const there = this.task(namespace, next.task);
    return there?.record.writeId === next.writeId ? there.version : null;
  }

  /** See `RunStore.putNode`. Runs in a write transaction; takes announcements that ended away. */
  putNode(namespace: string, node: NodeRecord, ttlMs: number): void {
    for (const raw of this.#nodes(namespace)) {
      if (this.#leftMs(namespace, raw) <= 0) this.removeNode(namespace, text(raw, 'id'));
    }
    const { boot, since, deadline } = this.#lifetimes.lasting(ttlMs);
    this.#connection.run(
      this.#sql.putNode,
      namespace,
      node.id,
      node.label,
      node.startedAtMs,
      boot,
      since,
      deadline,
      JSON.stringify(node),
    );
  }

  /** See `RunStore.removeNode`. */
  removeNode(namespace: string, id: string): void {
    this.#connection.run(this.#sql.removeNode, namespace, id);
    this.#lifetimes.forget(nodeName(namespace, id));
  }

  /** See `RunStore.nodes`. */
  nodes(namespace: string): readonly NodeRecord[] {
    const live = this.#nodes(namespace).filter((raw) => this.#leftMs(namespace, raw) > 0);
    return live.map((raw) => parsed<NodeRecord>(() => text(raw, 'record'), 'the record of a node'));
  }

  #create(namespace: string, next: TaskRecord): string | null {
    const row = this.#connection.row(this.#sql.createTask, namespace, next.task, ...taskColumns(next));
    return row === undefined ? null : versionText({ seq: integer(row, 'seq'), version: 1n });
  }

  #move(namespace: string, expected: string, next: TaskRecord): string | null {
    const version = parseVersion(expected);
    if (version === undefined) return null;
    const row = this.#connection.row(
      this.#sql.moveTask,
      ...taskColumns(next),
      namespace,
      next.task,
      version.seq,
      version.version,
    );
    if (row === undefined) return null;
    return versionText({ seq: version.seq, version: integer(row, 'version') });
  }

  #nodes(namespace: string): Row[] {
    return this.#connection.rows(this.#sql.nodes, namespace);
  }

  #leftMs(namespace: string, raw: Row): number {
    const name = nodeName(namespace, text(raw, 'id'));
    return this.#lifetimes.leftMs(name, `${String(raw['boot'])} ${String(raw['since'])}`, lifetime(raw));
  }
}

function nodeName(namespace: string, id: string): string {
  return `${namespace}/${id}`;
}
