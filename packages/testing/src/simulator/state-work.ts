/** What applications do with state: writes under a lock's fence, and plain compare-and-set. */
import { GuardError } from '@guard/core';
import type { Books } from './books.js';
import { callBounds } from './bounds.js';
import type { Belief } from './laws/beliefs.js';
import type { WrittenValue } from './laws/entries.js';
import type { SimNode } from './node.js';
import { chance } from './chance.js';
import type { Stage } from './stage.js';

/** The state work of one process. */
export class StateWork {
  #wishes = 0;

  constructor(
    private readonly stage: Stage,
    private readonly node: SimNode,
    private readonly books: Books,
  ) {}

  /** Writes what the lock protects. */
  async writeUnder({ lock, signal }: Belief): Promise<void> {
    const knownLost = signal.aborted;
    const key = `of-${lock.key}`;
    const written = chance(this.stage.random, 0.5)
      ? await this.#write(key, (value) => this.node.guard.state.set(key, value, { lock }))
      : await this.#update(key, { lock });
    if (written && knownLost)
      this.stage.journal.broken(
        'fence',
        `${this.node.name} wrote ${key} under a lock that it knew to be lost`,
      );
  }

  /** Changes what nothing protects but its version. */
  async compareAndSet(): Promise<void> {
    await this.#update('shared', {});
  }

  #update(key: string, options: { readonly lock?: Belief['lock'] }): Promise<boolean> {
    const { state } = this.node.guard;
    return this.#write(key, async (value) => {
      const entry = await state.get(key);
      return entry === null
        ? state.create(key, value, options)
        : state.update(key, entry.version, value, options);
    });
  }

  async #write(key: string, write: (value: WrittenValue) => Promise<string | null>): Promise<boolean> {
    const { calls, entries } = this.books;
    const wish = `${this.node.name}#${(this.#wishes += 1)}`;
    const call = calls.start(this.node, `write ${key} ${wish}`, callBounds(this.stage.plan).state);
    try {
      const version = await write({ wish });
      this.#note(`${call.name}: ${version === null ? 'somebody was faster' : 'written'}`);
      if (version === null) entries.toldRefused(wish, 'somebody was faster');
      else entries.toldWritten(wish, version);
      return version !== null;
    } catch (error) {
      this.#note(`${call.name}: ${String(error)}`);
      this.#failed(call, wish, error);
      return false;
    } finally {
      calls.end(call);
    }
  }

  #failed(call: Parameters<Books['calls']['settle']>[0], wish: string, error: unknown): void {
    const { calls, entries } = this.books;
    if (!GuardError.is(error)) return this.stage.journal.broken('S6', `${call.name}: ${String(error)}`);
    if (error.inDoubt) this.stage.journal.count('write in doubt');
    else entries.toldRefused(wish, error.code);
    if (['lock-lost', 'lock-suspect', 'stale-token'].includes(error.code)) return;
    calls.settle(call, { end: 'error', error });
  }

  #note(text: string): void {
    this.stage.journal.note(`${this.node.name} ${text}`);
  }
}
