/**
 * Faults as values. A fault says what becomes of one request between a guard and its backend; a plan keeps the faults
 * that are in play, picks the one for each request, and counts what was sent. It knows no port: the wrappers beside
 * it translate.
 */
import { invalidArgument, systemClock, type Clock } from '@guard/core';
import {
  checkClock,
  requireMethods,
  requireNumber,
  requireOneOf,
  requireText,
  requireTexts,
  requireWhole,
} from '../argument.js';
import type { Delay, Fault, FaultScope } from './fault-kinds.js';
import { checkFault, checkScope } from './fault-rules.js';

/** A fault in play. */
export interface PlayedFault {
  /** How many requests it has met. */
  readonly met: number;
  /** Takes it out of play. */
  stop(): void;
}

/** What was sent: one call carries one or more operations. */
export interface Traffic {
  readonly calls: number;
  readonly operations: number;
}

/** The error of a request that a fault rejects. */
export class PlayedFaultError extends Error {
  override readonly name = 'PlayedFaultError';
}

interface ActiveFault<V extends string> {
  readonly fault: Fault;
  readonly verbs: readonly V[] | undefined;
  skip: number;
  left: number;
  met: number;
}

/** How a wrapper carries out a request. */
export interface Request<O, A> {
  readonly operations: readonly O[];
  execute(operations: readonly O[]): Promise<readonly A[]>;
  /** Makes a `failed` answer; absent where the verb has none. */
  readonly failed?: (cause: unknown) => A;
}

/** The faults that are in play, and the traffic so far. */
export class FaultPlan<V extends string> {
  readonly #clock: Clock;
  readonly #verbs: readonly V[] | undefined;
  readonly #traffic = new Map<V, { calls: number; operations: number }>();
  #active: ActiveFault<V>[] = [];

  /** `verbs`: the only ones that faults may be limited to. Default: any. */
  constructor(clock: Clock = systemClock, verbs?: readonly V[]) {
    checkClock('clock', clock);
    if (verbs !== undefined) requireTexts('verbs', verbs);
    this.#clock = clock;
    this.#verbs = verbs;
  }

  /**
   * Puts a fault into play. Of several that fit a request the oldest is played; delays are added to it.
   *
   * @throws GuardError `invalid-argument`: no such fault, or no such verb.
   */
  play(fault: Fault, scope: FaultScope<V> = {}): PlayedFault {
    checkFault(fault);
    checkScope(scope, this.#verbs);
    const active = {
      fault,
      verbs: scope.verbs,
      skip: scope.skip ?? 0,
      left: scope.times ?? Infinity,
      met: 0,
    };
    this.#active.push(active);
    return {
      get met() {
        return active.met;
      },
      stop: () => {
        this.#active = this.#active.filter((other) => other !== active);
      },
    };
  }

  /** Takes every fault out of play. */
  clear(): void {
    this.#active = [];
  }

  /** Whether the next request of a verb would meet a fault or a delay. */
  isPlaying(verb: V): boolean {
    this.#requireVerb(verb);
    return this.#active.some(({ verbs, left }) => left > 0 && (verbs?.includes(verb) ?? true));
  }

  /** Counts a call that was made without a request. */
  count(verb: V, operations: number): void {
    requireWhole('operations', operations, 0);
    const { calls, operations: before } = this.traffic(verb);
    this.#traffic.set(verb, { calls: calls + 1, operations: before + operations });
  }

  /** What was sent of a verb since the start or the last `forget`. */
  traffic(verb: V): Traffic {
    this.#requireVerb(verb);
    return this.#traffic.get(verb) ?? { calls: 0, operations: 0 };
  }

  /** What was sent of all verbs together. */
  total(): Traffic {
    const all = [...this.#traffic.values()];
    return {
      calls: all.reduce((sum, { calls }) => sum + calls, 0),
      operations: all.reduce((sum, { operations }) => sum + operations, 0),
    };
  }

  /** Starts counting again at zero. */
  forgetTraffic(): void {
    this.#traffic.clear();
  }

  /** Sends a request through the faults that are in play. */
  async send<O, A>(verb: V, request: Request<O, A>): Promise<readonly A[]> {
    requireMethods('request', request, 'a Request', ['execute']);
    if (!Array.isArray(request.operations))
      throw invalidArgument('request.operations', request.operations, 'must be an array');
    this.count(verb, request.operations.length);
    const met = this.#meet(verb);
    const delays = met.filter((fault) => fault.type === 'delay');
    const fault = met.find((other) => other.type !== 'delay');
    await this.#sleep(sum(delays.map(({ requestMs }) => requestMs)));
    const answers = await (fault === undefined
      ? request.execute(request.operations)
      : this.#suffer(fault, request));
    await this.#sleep(sum(delays.map(({ replyMs }) => replyMs)));
    return answers;
  }

  /** Of a verb that is none, nothing was ever sent: that must not pass for an answer. */
  #requireVerb(verb: unknown): void {
    if (this.#verbs === undefined) requireText('verb', verb);
    else requireOneOf('verb', verb, this.#verbs);
  }

  #meet(verb: V): Fault[] {
    const met: Fault[] = [];
    for (const active of this.#active) {
      if (active.verbs !== undefined && !active.verbs.includes(verb)) continue;
      // A fault behind one that is played already does not count this request as its own.
      if (active.fault.type !== 'delay' && met.some(({ type }) => type !== 'delay')) continue;
      if (active.skip > 0) active.skip -= 1;
      else if (active.left > 0) {
        active.left -= 1;
        active.met += 1;
        met.push(active.fault);
      }
    }
    return met;
  }

  async #suffer<O, A>(
    fault: Exclude<Fault, { type: 'delay' }>,
    request: Request<O, A>,
  ): Promise<readonly A[]> {
    const { operations } = request;
    switch (fault.type) {
      case 'cut':
        return never();
      case 'lose-reply':
        await request.execute(operations);
        return never();
      case 'reset':
        if (fault.executed) await request.execute(operations);
        throw fault.error ?? new PlayedFaultError('the connection was reset');
      case 'execute-later':
        this.#executeLater(request, fault.afterMs);
        if (fault.answer === 'never') return never();
        throw new PlayedFaultError('the request was given up, and is executed later');
      case 'execute-twice':
        if (fault.answer === 'first') {
          this.#executeLater(request, fault.afterMs ?? 0);
          return request.execute(operations);
        }
        await request.execute(operations);
        await this.#sleep(fault.afterMs ?? 0);
        return request.execute(operations);
      case 'fail':
        return failSome(fault, request);
    }
  }

  /** Nobody hears the answer. */
  #executeLater<O, A>(request: Request<O, A>, afterMs: number): void {
    // In an async function, for nobody would catch what is thrown in a timer.
    const execute = (): void => void ignored((async () => request.execute(request.operations))());
    this.#clock.setTimer(execute, afterMs, { ref: false });
  }

  #sleep(ms: number): Promise<void> {
    if (ms <= 0) return Promise.resolve();
    return new Promise((resolve) => void this.#clock.setTimer(resolve, ms, { ref: false }));
  }
}

async function failSome<O, A>(
  fault: Extract<Fault, { type: 'fail' }>,
  request: Request<O, A>,
): Promise<readonly A[]> {
  const { operations, failed } = request;
  const cause = new PlayedFaultError('this operation failed');
  if (failed === undefined) throw cause;
  const fails = operations.map((operation) => fault.operations?.(operation) ?? true);
  const executed = fault.executed ? operations : operations.filter((_, index) => !fails[index]);
  const answers = executed.length > 0 ? [...(await request.execute(executed))] : [];
  return operations.map((_, index) => {
    const answer = fault.executed || !fails[index] ? answers.shift() : undefined;
    return fails[index] || answer === undefined ? failed(cause) : answer;
  });
}

function sum(delays: readonly (Delay | undefined)[]): number {
  return delays.reduce<number>((total, delay) => {
    const ms = typeof delay === 'function' ? delay() : (delay ?? 0);
    requireNumber('a drawn delay', ms, 0);
    return total + ms;
  }, 0);
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

async function ignored(late: Promise<unknown>): Promise<void> {
  await late.catch(() => undefined);
}
