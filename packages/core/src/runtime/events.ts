/** What a guard tells about itself. A listener that throws harms nobody: its error becomes an `error` event. */
import type { GuardEvents, GuardListener } from '../api/event.js';
import { invalidArgument } from '../value/error.js';
import { checkFunction } from '../value/options.js';

type AnyListener = (event: never) => void;

/** The type makes sure that none is forgotten. */
const EVENTS = {
  'lock-granted': true,
  'lock-released': true,
  'lock-lost': true,
  'lock-suspect': true,
  'lock-forced': true,
  'claim-queued': true,
  'claim-cancelled': true,
  'run-started': true,
  'run-completed': true,
  'run-failed': true,
  'run-skipped': true,
  'run-taken-over': true,
  'run-expired': true,
  'run-on-hold': true,
  'run-refused': true,
  'run-long': true,
  'run-unguarded': true,
  alarm: true,
  'schedule-conflict': true,
  'clock-skew': true,
  'loop-lag': true,
  'backend-unavailable': true,
  'backend-recovered': true,
  error: true,
} satisfies Record<keyof GuardEvents, true>;

/** Every event there is, for whoever listens to all of them. */
export const EVENT_NAMES = Object.keys(EVENTS) as readonly (keyof GuardEvents)[];

/** Typed events of one guard. */
export class Events {
  private readonly listeners = new Map<keyof GuardEvents, Set<AnyListener>>();

  /**
   * Calls `listener` on every `event` from now on. Returns a function that ends it.
   *
   * @throws GuardError `invalid-argument`: no such event, or no function.
   */
  on<E extends keyof GuardEvents>(event: E, listener: GuardListener<E>): () => void {
    if (!Object.hasOwn(EVENTS, event)) {
      throw invalidArgument('event', event, `must be one of ${EVENT_NAMES.join(', ')}`);
    }
    checkFunction('listener', listener);
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
        const answer: unknown = (listener as (payload: GuardEvents[E]) => unknown)(payload);
        if (answer instanceof Promise) answer.catch((error: unknown) => this.listenerFailed(event, error));
      } catch (error) {
        this.listenerFailed(event, error);
      }
    }
  }

  private listenerFailed(event: keyof GuardEvents, error: unknown): void {
    // An `error` listener that throws has nobody left to tell.
    if (event !== 'error') this.emit('error', { error, during: `a listener of ${event}` });
  }
}
