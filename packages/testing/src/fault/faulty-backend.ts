/**
 * A lock backend with faults. It wraps a real one, so that what is executed is executed for real, and only the way
 * there, the way back and the stream of notices are in the test's hand. One wrapper stands for one process's
 * connection: several over one backend are several processes with separate faults.
 */
import {
  checkOptions,
  systemClock,
  type AtOnce,
  type Claim,
  type Clock,
  type LockBackend,
  type LockQuery,
  type Notice,
  type Release,
  type Renewal,
  type Subscription,
} from '@guard/core';
import {
  checkClock,
  checkFlag,
  requireMethods,
  requireNumber,
  requireOneOf,
  requireWhole,
} from '../argument.js';
import { FaultPlan, PlayedFaultError, type PlayedFault } from './fault.js';
import { portViolations } from './port-rules.js';

/** Verbs of a lock backend, as faults name them. */
export type LockVerb = 'acquire' | 'renew' | 'release' | 'inspect' | 'subscribe';

const VERBS: readonly LockVerb[] = ['acquire', 'renew', 'release', 'inspect', 'subscribe'];

/** What becomes of a notice. */
export type NoticeFault =
  | { readonly type: 'drop' }
  | { readonly type: 'delay'; readonly ms: number }
  /** Arrives, and once more `afterMs` later. */
  | { readonly type: 'duplicate'; readonly afterMs: number };

/** A wrapped lock backend and the hand on it. */
export interface FaultyBackend {
  /** Hand this to `createGuard({ locks })`. */
  readonly backend: LockBackend;
  /** Faults of requests, and how many were sent. */
  readonly plan: FaultPlan<LockVerb>;
  /** Calls that broke a rule of the port: two operations on one key, an unsorted batch, and so on. */
  readonly violations: readonly string[];
  /** Drops every packet, both ways, until `heal`: requests vanish, notices too. */
  cut(): void;
  /** The server is away until `heal`: every request is rejected at once and not executed; streams say so. */
  down(error?: Error): void;
  /** Ends every fault. After `cut` and `down` the streams say that notices may have been missed (`gap`). */
  heal(): void;
  /** The reply of the `nth` call of a verb from now on is lost: executed, never answered. */
  loseReply(verb: LockVerb, nth?: number): PlayedFault;
  /** Puts a fault of notices into play; `times`: how many notices it meets (default: all until `heal`). */
  playNotices(fault: NoticeFault, times?: number): void;
  /** Notices that were delivered to the guard. */
  readonly notices: number;
  /** Streams of notices that are open now. */
  readonly openStreams: number;
}

/** How a lock backend is wrapped. */
export interface FaultyBackendOptions {
  /** What faults are timed by. Default: the system's clock. */
  readonly clock?: Clock;
  /** Whether closing the wrapper closes the wrapped backend. Default `false`. */
  readonly closeInner?: boolean;
  /**
   * `true`: a backend that answers at once does so here too, for as long as no fault is in play; with one, requests
   * take the way that can be lost. Default `false`: every operation is a request, because a wrapper around this one
   * that only knows requests would be passed by.
   */
  readonly atOnce?: boolean;
}

/** Wraps a lock backend so that a test can play faults on it. Closing the wrapper leaves the wrapped one open. */
export function faultyBackend(inner: LockBackend, options: FaultyBackendOptions = {}): FaultyBackend {
  checkArguments(inner, options);
  const clock = options.clock ?? systemClock;
  const plan = new FaultPlan<LockVerb>(clock, VERBS);
  const stream = new FaultyStream(clock);
  const violations: string[] = [];
  const batch = <O extends Claim | Renewal | Release, A>(
    verb: 'acquire' | 'renew' | 'release',
    operations: readonly O[],
    execute: (operations: readonly O[]) => Promise<readonly A[]>,
  ): Promise<readonly A[]> => {
    violations.push(...portViolations(inner, verb, operations));
    return plan.send(verb, {
      operations,
      execute,
      failed: (cause) => ({ status: 'failed', cause }) as A,
    });
  };
  const atOnce = options.atOnce ? shortCut(inner, plan, violations) : undefined;
  const backend: LockBackend = {
    name: inner.name,
    traits: inner.traits,
    ...(inner.partition !== undefined && { partition: (key: string) => inner.partition!(key) }),
    acquire: (claims) => batch('acquire', claims, (some) => inner.acquire(some)),
    renew: (renewals) => batch('renew', renewals, (some) => inner.renew(some)),
    release: (releases) => batch('release', releases, (some) => inner.release(some)),
    inspect: async (query) => {
      const execute = async ([only]: readonly LockQuery[]) => [await inner.inspect(only!)];
      return (await plan.send('inspect', { operations: [query], execute }))[0]!;
    },
    ...(inner.subscribe !== undefined && {
      subscribe: async (session: string, onNotice: (notice: Notice) => void) => {
        const execute = async () => [await stream.open(onNotice, (sink) => inner.subscribe!(session, sink))];
        return (await plan.send('subscribe', { operations: [session], execute }))[0]!;
      },
    }),
    ...(atOnce !== undefined && { atOnce: () => atOnce }),
    close: () => (options.closeInner ? inner.close() : Promise.resolve()),
  };
  return {
    backend,
    plan,
    violations,
    cut: () => {
      plan.play({ type: 'cut' });
      stream.lose('silent');
    },
    down: (error = new PlayedFaultError('the server is away')) => {
      plan.play({ type: 'reset', executed: false, error });
      stream.lose('told');
    },
    heal: () => {
      plan.clear();
      stream.heal();
    },
    loseReply: (verb, nth = 1) => {
      requireWhole('nth', nth, 1);
      return plan.play({ type: 'lose-reply' }, { verbs: [verb], skip: nth - 1, times: 1 });
    },
    playNotices: (fault, times = Infinity) => stream.play(fault, times),
    get notices() {
      return stream.delivered;
    },
    get openStreams() {
      return stream.size;
    },
  };
}

function checkArguments(inner: unknown, options: FaultyBackendOptions): void {
  requireMethods('inner', inner, 'a LockBackend', ['acquire', 'renew', 'release', 'inspect']);
  checkOptions('options', options, ['clock', 'closeInner', 'atOnce']);
  checkClock('options.clock', options.clock);
  checkFlag('options.closeInner', options.closeInner);
  checkFlag('options.atOnce', options.atOnce);
}

/** Answers at once while nothing is in play, counted and checked like a request. */
function shortCut(inner: LockBackend, plan: FaultPlan<LockVerb>, violations: string[]): AtOnce | undefined {
  const atOnce = inner.atOnce?.();
  const once =
    <O extends Claim | Release, A>(verb: 'acquire' | 'release', answer: (operation: O) => A | undefined) =>
    (operation: O): A | undefined => {
      if (plan.isPlaying(verb)) return undefined;
      violations.push(...portViolations(inner, verb, [operation]));
      const answered = answer(operation);
      if (answered !== undefined) plan.count(verb, 1);
      return answered;
    };
  return atOnce && { acquire: once('acquire', atOnce.acquire), release: once('release', atOnce.release) };
}

/** All streams of one wrapper: what is dropped on one is dropped on all. */
class FaultyStream {
  delivered = 0;
  readonly #clock: Clock;
  readonly #sinks = new Set<(notice: Notice) => void>();
  #active: { readonly fault: NoticeFault; left: number }[] = [];
  /** The connection of the streams is lost: nothing comes through, and it has to be said when it is back. */
  #lost = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async open(
    sink: (notice: Notice) => void,
    connect: (sink: (notice: Notice) => void) => Promise<Subscription>,
  ): Promise<Subscription> {
    let open = true;
    const guarded = (notice: Notice): void => {
      if (!open) return;
      this.delivered += 1;
      sink(notice);
    };
    const inner = await connect((notice) => this.#pass(notice, guarded));
    this.#sinks.add(guarded);
    return {
      close: () => {
        open = false;
        this.#sinks.delete(guarded);
        return inner.close();
      },
    };
  }

  get size(): number {
    return this.#sinks.size;
  }

  play(fault: NoticeFault, times: number): void {
    requireOneOf('fault.type', fault?.type, ['drop', 'delay', 'duplicate']);
    if (fault.type === 'delay') requireNumber('fault.ms', fault.ms, 0);
    if (fault.type === 'duplicate') requireNumber('fault.afterMs', fault.afterMs, 0);
    if (times !== Infinity) requireWhole('times', times, 1);
    this.#active.push({ fault, left: times });
  }

  lose(how: 'silent' | 'told'): void {
    this.#lost = true;
    if (how === 'told') for (const sink of this.#sinks) sink({ type: 'gap', open: false });
  }

  heal(): void {
    this.#active = [];
    if (!this.#lost) return;
    this.#lost = false;
    for (const sink of this.#sinks) sink({ type: 'gap', open: true });
  }

  #pass(notice: Notice, sink: (notice: Notice) => void): void {
    if (this.#lost) return;
    const active = this.#active.find(({ left }) => left > 0);
    if (active === undefined) return sink(notice);
    active.left -= 1;
    const { fault } = active;
    switch (fault.type) {
      case 'drop':
        return;
      case 'delay':
        return void this.#clock.setTimer(() => sink(notice), fault.ms, { ref: false });
      case 'duplicate':
        sink(notice);
        return void this.#clock.setTimer(() => sink(notice), fault.afterMs, { ref: false });
    }
  }
}
