/**
 * A state store with faults: the same hand on it as `faultyBackend` has on locks.
 */
import { checkOptions, type Clock, type StateChange, type StateStore, type Subscription } from '@guard/core';
import { checkClock, checkFlag, requireMethods, requireWhole } from '../argument.js';
import { FaultPlan, PlayedFaultError, type PlayedFault } from './fault.js';

/** Verbs of a state store, as faults name them. */
export type StateVerb = 'now' | 'read' | 'write' | 'scan' | 'watch';

const VERBS: readonly StateVerb[] = ['now', 'read', 'write', 'scan', 'watch'];

/** A wrapped state store and the hand on it. */
export interface FaultyState {
  /** Hand this to `createGuard({ state })`, or to `kvRuns`. */
  readonly store: StateStore;
  /** Faults of requests, and how many were sent. */
  readonly plan: FaultPlan<StateVerb>;
  /** Drops every request until `heal`. Watches stay silent, and report what they missed when it is healed. */
  cut(): void;
  /** The server is away until `heal`: every request is rejected at once and not executed. */
  down(error?: Error): void;
  /** Ends every fault. */
  heal(): void;
  /** The reply of the `nth` call of a verb from now on is lost: executed, never answered. */
  loseReply(verb: StateVerb, nth?: number): PlayedFault;
}

/** Wraps a state store so that a test can play faults on it. Closing the wrapper leaves the wrapped one open. */
export function faultyState(
  inner: StateStore,
  options: { readonly clock?: Clock; readonly closeInner?: boolean } = {},
): FaultyState {
  requireMethods('inner', inner, 'a StateStore', ['read', 'write', 'scan', 'watch']);
  checkOptions('options', options, ['clock', 'closeInner']);
  checkClock('options.clock', options.clock);
  checkFlag('options.closeInner', options.closeInner);
  const plan = new FaultPlan<StateVerb>(options.clock, VERBS);
  const watches = new HeldWatches();
  const one = async <O, A>(verb: StateVerb, operation: O, execute: () => Promise<A>): Promise<A> =>
    (await plan.send(verb, { operations: [operation], execute: async () => [await execute()] }))[0]!;
  const store: StateStore = {
    name: inner.name,
    traits: inner.traits,
    ...(inner.partition !== undefined && { partition: (key: string) => inner.partition!(key) }),
    now: () => one('now', null, () => inner.now()),
    read: (keys) => plan.send('read', { operations: keys, execute: (some) => inner.read(some) }),
    write: (writes) =>
      plan.send('write', {
        operations: writes,
        execute: (some) => inner.write(some),
        failed: (cause) => ({ status: 'failed', cause }),
      }),
    scan: (prefix, cursor, limit) => one('scan', prefix, () => inner.scan(prefix, cursor, limit)),
    watch: (prefix, listener) =>
      one('watch', prefix, () => watches.open(listener, (sink) => inner.watch(prefix, sink))),
    close: () => (options.closeInner ? inner.close() : Promise.resolve()),
  };
  return {
    store,
    plan,
    cut: () => {
      plan.play({ type: 'cut' });
      watches.hold();
    },
    down: (error = new PlayedFaultError('the server is away')) => {
      plan.play({ type: 'reset', executed: false, error });
      watches.hold();
    },
    heal: () => {
      plan.clear();
      watches.flush();
    },
    loseReply: (verb, nth = 1) => {
      requireWhole('nth', nth, 1);
      return plan.play({ type: 'lose-reply' }, { verbs: [verb], skip: nth - 1, times: 1 });
    },
  };
}

/** An adapter closes a gap of its watch by listing again; here the newest change per key is kept for that moment. */
class HeldWatches {
  #held: Map<(change: StateChange) => void, Map<string, StateChange>> | undefined;

  async open(
    listener: (change: StateChange) => void,
    connect: (sink: (change: StateChange) => void) => Promise<Subscription>,
  ): Promise<Subscription> {
    let open = true;
    const sink = (change: StateChange): void => {
      if (open) listener(change);
    };
    const inner = await connect((change) => {
      if (this.#held === undefined) return sink(change);
      const changes = this.#held.get(sink) ?? new Map<string, StateChange>();
      this.#held.set(sink, changes.set(change.key, change));
    });
    return {
      close: () => {
        open = false;
        return inner.close();
      },
    };
  }

  hold(): void {
    this.#held ??= new Map();
  }

  flush(): void {
    const held = this.#held ?? new Map<(change: StateChange) => void, Map<string, StateChange>>();
    this.#held = undefined;
    for (const [sink, changes] of held) for (const change of changes.values()) sink(change);
  }
}
