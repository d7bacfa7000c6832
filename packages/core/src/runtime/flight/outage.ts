/**
 * What a guard knows about its backend's health: which faults are worth repeating, when the backend went away and
 * came back, and the breaker that keeps a backend in trouble from being asked by everybody at once. Renewals,
 * releases and cancels never pass the breaker: they are what keeps an outage from doing harm.
 */
import {
  ConsecutiveBreaker,
  circuitBreaker,
  handleAll,
  isBrokenCircuitError,
  type CircuitBreakerPolicy,
} from 'cockatiel';
import type { Clock, Policy } from '../../port/clock.js';
import { discreet } from '../../value/discreet.js';
import { GuardError } from '../../value/error.js';
import { systemClock } from '../clock.js';
import type { Events } from '../events.js';

const FAULTS_TO_OPEN = 5;
const HALF_OPEN_AFTER_MS = 500;

/** Faults that no repetition mends: a missing table, bad input, a closed backend. */
export function isPermanent(cause: unknown): boolean {
  if (!GuardError.is(cause)) return false;
  return cause.code === 'schema-missing' || cause.code === 'invalid-argument' || cause.code === 'closed';
}

/**
 * The error for a backend that could not be asked. A permanent fault already says better what is wrong. What the
 * client library hung on its error is not told.
 */
export function unavailable(what: string, cause: unknown, inDoubt = false): GuardError {
  const told = discreet(cause);
  if (isPermanent(told)) return told as GuardError;
  const why = typeof told === 'object' && told !== null ? `: ${wordsOf(told as Error)}` : '';
  return new GuardError(
    'unavailable',
    `${what}${why}`,
    told === undefined ? { inDoubt } : { cause: told, inDoubt },
  );
}

/** Some errors have no words, only their class, such as node-redis for a command that took too long. */
function wordsOf(error: Error): string {
  const { message, name } = error;
  if (message !== '') return message;
  return name === 'Error' ? error.constructor.name : name;
}

/**
 * The policy that is built in: a circuit breaker. It counts real time, so a guard with a clock of its own has none
 * unless one is handed in.
 */
export function defaultPolicy(clock: Clock): Policy {
  return clock === systemClock ? new Breaker() : NONE;
}

const NONE: Policy = { execute: (fn) => fn() };

/**
 * The breaker that is built in, one for each partition: a dead master of a cluster must not keep calls from the others.
 * In health it is not even passed: it learns of the first fault by `failed`.
 */
class Breaker implements Policy {
  private readonly troubled = new Map<string, Trouble>();

  get isQuiet(): boolean {
    return this.troubled.size === 0;
  }

  execute<T>(fn: () => Promise<T>): Promise<T> {
    return this.executeIn('', fn);
  }

  executeIn<T>(partition: string, fn: () => Promise<T>): Promise<T> {
    const trouble = this.troubled.get(partition);
    return trouble === undefined ? fn() : this.inTrouble(partition, trouble, fn);
  }

  /** A call failed; the breaker learns here of one that did not pass it. */
  failed(partition: string, cause: unknown): void {
    const trouble = this.troubled.get(partition);
    if (trouble !== undefined) {
      trouble.cause = cause;
      return;
    }
    const breaker = circuitBreaker(handleAll, {
      halfOpenAfter: HALF_OPEN_AFTER_MS,
      breaker: new ConsecutiveBreaker(FAULTS_TO_OPEN),
    });
    this.troubled.set(partition, { breaker, cause });
    breaker.execute(() => Promise.reject(cause as Error)).catch(() => undefined);
  }

  private async inTrouble<T>(partition: string, trouble: Trouble, fn: () => Promise<T>): Promise<T> {
    try {
      const value = await trouble.breaker.execute(fn);
      this.troubled.delete(partition);
      return value;
    } catch (error) {
      throw isBrokenCircuitError(error) ? trouble.cause : error;
    }
  }
}

/** A partition that could not be asked, and why. */
interface Trouble {
  readonly breaker: CircuitBreakerPolicy;
  cause: unknown;
}

/** Of a partition that failed and is not asked any more nothing is known after this. */
const FORGET_AFTER_MS = 15_000;
const MAX_PARTITIONS = 1_000;

/** Watches the answers of one backend: it is away while any of its partitions is. */
export class Outage {
  /** The partitions that could not be asked when last tried, and when that was: the latest at the end. */
  private readonly down = new Map<string, number>();
  private rootCause: unknown;

  constructor(
    private readonly backend: string,
    private readonly events: Events,
    private readonly policy: Policy,
    private readonly clock: Clock,
  ) {}

  /** Whether a call need not pass the policy: no fault is known, and nobody handed a policy in. */
  get isQuiet(): boolean {
    const { policy } = this;
    return !this.isDown && (policy === NONE || (policy instanceof Breaker && policy.isQuiet));
  }

  /** Whether the backend, or a part of it, could not be asked when last tried. */
  get isDown(): boolean {
    return this.down.size > 0;
  }

  /** Runs a call to one partition under the policy. A broken circuit is answered with what broke it. */
  guarded<T>(call: () => Promise<T>, partition = ''): Promise<T> {
    const { policy } = this;
    // A policy of somebody else's may answer without a promise.
    const answer =
      policy instanceof Breaker ? policy.executeIn(partition, call) : Promise.resolve(policy.execute(call));
    if (!this.isDown) return answer;
    return answer.catch((cause: unknown) => {
      throw isBrokenCircuitError(cause) && this.rootCause !== undefined ? this.rootCause : cause;
    });
  }

  /** The backend said something, or one partition of it. */
  answered(partition = ''): void {
    const { down } = this;
    if (down.size === 0) return;
    down.delete(partition);
    const forgottenMs = this.clock.now().monoMs - FORGET_AFTER_MS;
    for (const [other, failedMs] of down) if (failedMs < forgottenMs) down.delete(other);
    if (down.size > 0) return;
    this.rootCause = undefined;
    this.events.emit('backend-recovered', { backend: this.backend });
  }

  /** The backend could not be asked, or one partition of it. */
  failed(fault: unknown, partition = ''): void {
    const { down } = this;
    const wasDown = this.isDown;
    const cause = discreet(fault);
    this.rootCause = cause;
    if (this.policy instanceof Breaker) this.policy.failed(partition, cause);
    down.delete(partition);
    if (down.size >= MAX_PARTITIONS) down.delete([...down.keys()][0]!);
    down.set(partition, this.clock.now().monoMs);
    if (!wasDown) this.events.emit('backend-unavailable', { backend: this.backend, cause });
  }
}
