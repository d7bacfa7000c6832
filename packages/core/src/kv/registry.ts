/**
 * What nodes know of tasks and of each other: one entry per task, changed by compare-and-set, and one per node, which
 * ends by itself unless it is announced again.
 */
import type { Random } from '../port/clock.js';
import type { NodeRecord, StoredTask, TaskRecord } from '../port/run-store.js';
import type { StateStore, StateWrite, WriteAnswer } from '../port/state-store.js';
import { GuardError } from '../value/error.js';
import { nodeKey, nodePrefix, taskKey } from './keys.js';

/** Nodes that are read in one trip. */
const NODES_PER_PAGE = 256;
/** The most pages of nodes that are read: beyond that, something announces nodes without end. */
const MAX_PAGES = 64;

/** Tasks and nodes of one store. */
export class Registry {
  readonly #state: StateStore;
  readonly #random: Random;

  constructor(state: StateStore, random: Random) {
    this.#state = state;
    this.#random = random;
  }

  /** See `RunStore.task`. */
  async task(namespace: string, task: string): Promise<StoredTask | null> {
    const [entry] = await this.#state.read([taskKey(namespace, task)]);
    if (entry == null) return null;
    return { record: JSON.parse(entry.value) as TaskRecord, version: entry.version };
  }

  /** See `RunStore.putTask`. */
  async putTask(namespace: string, expected: string | null, next: TaskRecord): Promise<string | null> {
    const expect = expected === null ? 'absent' : { version: expected };
    const writeId = next.writeId ?? this.#random.id();
    const key = taskKey(namespace, next.task);
    const answer = await this.#write({ key, value: JSON.stringify(next), expect, writeId, ttl: 'none' });
    if (answer.status === 'written') return answer.version;
    if (answer.status === 'conflict' && !answer.resent) return null;
    const message = `whether the record of task ${next.task} was written is not known`;
    throw new GuardError('unavailable', message, { inDoubt: true, cause: causeOf(answer) });
  }

  /** See `RunStore.putNode`. */
  async putNode(namespace: string, node: NodeRecord, ttlMs: number): Promise<void> {
    await this.#put(nodeKey(namespace, node.id), JSON.stringify(node), ttlMs);
  }

  /** See `RunStore.removeNode`. */
  async removeNode(namespace: string, id: string): Promise<void> {
    await this.#put(nodeKey(namespace, id), null, 'none');
  }

  /** See `RunStore.nodes`. */
  async nodes(namespace: string): Promise<readonly NodeRecord[]> {
    const nodes: NodeRecord[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const scanned = await this.#state.scan(nodePrefix(namespace), cursor, NODES_PER_PAGE);
      nodes.push(...scanned.entries.map(({ value }) => JSON.parse(value) as NodeRecord));
      if (scanned.cursor === undefined) break;
      cursor = scanned.cursor;
    }
    return nodes;
  }

  async #put(key: string, value: string | null, ttl: StateWrite['ttl']): Promise<void> {
    const answer = await this.#write({ key, value, expect: 'any', writeId: this.#random.id(), ttl });
    if (answer.status === 'written') return;
    throw new GuardError('unavailable', `the entry ${key} was not written`, { cause: causeOf(answer) });
  }

  async #write(write: StateWrite): Promise<WriteAnswer> {
    const [answer] = await this.#state.write([write]);
    return answer!;
  }
}

function causeOf(answer: WriteAnswer): unknown {
  return answer.status === 'failed' ? answer.cause : new Error(`the store answered ${answer.status}`);
}
