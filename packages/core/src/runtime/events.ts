/** What a guard tells about itself. A listener that throws harms nobody: its error becomes an `error` event. */
import type { GuardEvents, GuardListener } from '../api/event.js';

type AnyListener = (event: never) => void;

/** Typed events of one guard. */
export class Events {
  private readonly listeners = new Map<keyof GuardEvents, Set<AnyListener>>();

  /** Calls `listener` on every `event` from now on. Returns a function that ends it. */
  on<E extends keyof GuardEvents>(event: E, listener: GuardListener<E>): () => void {
    const set = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, set.add(listener));
    return () => {
      set.delete(listener);
      if (set.size === 0 && this.listeners.get(event) === set) this.listeners.delete(event);
    };
  }

  /** Whether anybody listens: the hot path makes no event for nobody. */
  has(event: keyof GuardEvents): boolean {
    return this.listeners.has(event);
  }

  emit<E extends keyof GuardEvents>(event: E, payload: GuardEvents[E]): void {
    for (const listener of this.listeners.get(event) ?? []) {
      try {
        (listener as GuardListener<E>)(payload);
      } catch (error) {
        // An `error` listener that throws has nobody left to tell.
        if (event !== 'error') this.emit('error', { error, during: `a listener of ${event}` });
      }
    }
  }
}
