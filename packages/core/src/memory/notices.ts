/**
 * Who hears of hand-overs: listeners by session, as the port has it. A notice is a message, so it is delivered after
 * the call that caused it has returned, each in a turn of its own: what a listener does, or throws, can reach neither
 * the caller of the backend nor another listener.
 */
import type { Notice, Subscription } from '../port/lock-backend.js';

type Listener = (notice: Notice) => void;

/** Open streams of notices. */
export class Notices {
  readonly #listeners = new Map<string, Set<{ readonly call: Listener }>>();

  /** Opens a stream for one session. The same function may listen twice. */
  open(session: string, onNotice: Listener): Subscription {
    const listener = { call: onNotice };
    const ofSession = this.#listeners.get(session) ?? new Set();
    this.#listeners.set(session, ofSession.add(listener));
    return {
      close: async () => {
        ofSession.delete(listener);
        if (ofSession.size === 0 && this.#listeners.get(session) === ofSession)
          this.#listeners.delete(session);
      },
    };
  }

  /** Tells a session; a stream that is closed by the time of the delivery hears nothing. */
  send(session: string, notice: Notice): void {
    const ofSession = this.#listeners.get(session);
    if (ofSession === undefined) return;
    for (const listener of ofSession) {
      queueMicrotask(() => {
        if (ofSession.has(listener)) listener.call(notice);
      });
    }
  }
}
