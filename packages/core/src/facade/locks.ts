/** The lock part of a guard: checks what it is given, turns keys into full keys, and hands on to the runtime. */
import type { AcquireOptions, Lock, LockApi, LockSet, LockStatus, TryOptions } from '../api/lock.js';
import type { LockInfo } from '../port/lock-backend.js';
import { currentFrame } from '../runtime/context.js';
import type { Events } from '../runtime/events.js';
import type { Lease } from '../runtime/lock/held-lock.js';
import { busyError } from '../runtime/lock/lock-errors.js';
import type { Locks } from '../runtime/lock/locks.js';
import type { ClaimOutcome, ClaimRequest } from '../runtime/lock/lock-service.js';
import { marginMs, parseDuration } from '../value/duration.js';
import { invalidArgument } from '../value/error.js';
import { encodeKey, fullKey, type Key } from '../value/key.js';
import { checkFunction, checkOptions, checkSignal } from '../value/options.js';
import { compareText } from '../value/token.js';
import { HeldSet } from './lock-set.js';
import { LockedWork, type Work } from './locked-work.js';
import type { Running } from './running.js';

/** How many keys `acquireAll` takes. */
const MAX_SET = 1_000;
const TRY_OPTIONS = ['ttl', 'renew', 'signal'];
const ACQUIRE_OPTIONS = [...TRY_OPTIONS, 'wait'];

/** Defaults that a guard was given, in milliseconds. */
export interface LockDefaults {
  readonly namespace: string;
  readonly ttlMs: number;
  readonly waitMs: number;
}

const SOON = Promise.resolve();

/** Locks as applications see them. */
export class LockFacade implements LockApi {
  /** What stands before every key. */
  private readonly prefix: string;

  constructor(
    private readonly locks: Locks,
    private readonly defaults: LockDefaults,
    private readonly events: Events,
    private readonly running: Running,
  ) {
    this.prefix = fullKey(defaults.namespace, 'lock', '');
  }

  withLock<T>(key: Key, work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  withLock<T>(key: Key, options: AcquireOptions, work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  withLock<T>(key: Key, first: unknown, second?: unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const isShort = second === undefined && typeof first === 'function';
      const work = isShort ? first : second;
      checkFunction('work', work);
      const request = this.request(key, isShort ? undefined : (first as AcquireOptions | undefined));
      const parent = currentFrame();
      const claimed = this.locks.claimSoon(request, parent);
      const { running, locks } = this;
      const call = new LockedWork(running, work as Work<T>, locks.backend, request, parent, resolve, reject);
      // Work never begins inside the call that asks for it, whatever the backend.
      if (claimed instanceof Promise) claimed.then((outcome) => call.begin(outcome), reject);
      else void SOON.then(() => call.begin(claimed));
    });
  }

  async acquire(key: Key, options?: AcquireOptions): Promise<Lock> {
    const request = this.request(key, options);
    return handle(granted(request, await this.locks.claimSoon(request, currentFrame())));
  }

  async tryAcquire(key: Key, options?: TryOptions): Promise<Lock | null> {
    const outcome = await this.locks.claim(this.request(key, options, true));
    return outcome.status === 'granted' ? handle(outcome.lock as Lease) : null;
  }

  async acquireAll(keys: readonly Key[], options?: AcquireOptions): Promise<LockSet> {
    if (!Array.isArray(keys) || keys.length === 0)
      throw invalidArgument('keys', keys, 'must be a list of keys');
    if (keys.length > MAX_SET) throw invalidArgument('keys', keys, `must be at most ${MAX_SET}`);
    // Not `keys.map`, which passes over what was left out.
    const requests = Array.from(keys, (key, index) => this.request(key, options, false, `keys[${index}]`));
    requests.sort((a, b) => compareText(a.key, b.key));
    const double = requests.find((request, index) => request.key === requests[index + 1]?.key);
    if (double !== undefined) throw invalidArgument('keys', double.shownKey, 'must name each key once');
    return this.grantsOf(requests);
  }

  async inspect(key: Key): Promise<LockStatus> {
    const shown = encodeKey('key', key);
    const [info] = await this.locks.inspect([this.full(shown)]);
    return statusOf(shown, info);
  }

  async forceRelease(key: Key, options: { readonly note: string }): Promise<boolean> {
    const shown = encodeKey('key', key);
    checkOptions('forceRelease options', options, ['note']);
    const note: unknown = (options as { readonly note?: unknown } | undefined)?.note;
    if (typeof note !== 'string' || note.trim() === '') throw invalidArgument('note', note, 'must say why');
    const [info] = await this.locks.inspect([this.full(shown)]);
    const forced = await this.locks.forceRelease(this.full(shown));
    if (forced) this.events.emit('lock-forced', { key: shown, token: info?.token ?? 0n, note });
    return forced;
  }

  /** One after the other in the order of their keys, so that two sets cannot block each other; all or none. */
  private async grantsOf(requests: readonly ClaimRequest[]): Promise<LockSet> {
    const endMonoMs = this.locks.clock.now().monoMs + (requests[0]?.waitMs ?? 0);
    const leases: Lease[] = [];
    try {
      for (const request of requests) {
        const leftMs = Math.max(0, endMonoMs - this.locks.clock.now().monoMs);
        leases.push(handle(granted(request, await this.locks.claim({ ...request, waitMs: leftMs }))));
      }
      const set = new HeldSet(leases);
      set.assertHeld();
      return set;
    } catch (error) {
      await Promise.all(leases.map((lease) => lease.release()));
      throw error;
    }
  }

  private request(
    key: unknown,
    options: AcquireOptions | undefined,
    tries = false,
    argument = 'key',
  ): ClaimRequest {
    const shownKey = encodeKey(argument, key);
    if (options === undefined) {
      const { ttlMs, waitMs } = this.defaults;
      return { key: this.full(shownKey), shownKey, ttlMs, waitMs: tries ? 0 : waitMs, renewMs: ttlMs / 3 };
    }
    checkOptions('lock options', options, tries ? TRY_OPTIONS : ACQUIRE_OPTIONS);
    checkSignal('signal', options.signal);
    const ttlMs = checkTtl('ttl', options.ttl, this.defaults.ttlMs, this.locks.minTtlMs);
    const waitMs =
      options.wait === undefined
        ? this.defaults.waitMs
        : parseDuration('wait', options.wait, { minMs: 0, infinite: true });
    return {
      key: this.full(shownKey),
      shownKey,
      ttlMs,
      waitMs: tries ? 0 : waitMs,
      renewMs: renewOf(options.renew, ttlMs),
      signal: options.signal,
    };
  }

  private full(shownKey: string): string {
    return this.prefix + shownKey;
  }
}

/**
 * A ttl that the backend keeps and that leaves room for the margin.
 *
 * @throws GuardError `invalid-argument` with both numbers.
 */
export function checkTtl(argument: string, ttl: unknown, defaultMs: number, minTtlMs: number): number {
  const ttlMs = ttl === undefined ? defaultMs : parseDuration(argument, ttl);
  if (ttlMs < minTtlMs)
    throw invalidArgument(argument, ttlMs, `must be at least ${minTtlMs} ms on this backend`);
  const margin = marginMs(ttlMs);
  if (margin * 4 <= ttlMs) return ttlMs;
  throw invalidArgument(argument, ttlMs, `must be at least four times its margin of ${margin} ms`);
}

function renewOf(renew: unknown, ttlMs: number): number | false {
  if (renew === undefined) return ttlMs / 3;
  if (renew === false) return false;
  const renewMs = parseDuration('renew', renew);
  const latestMs = ttlMs - 2 * marginMs(ttlMs);
  if (renewMs <= Math.max(latestMs, 0)) return renewMs;
  throw invalidArgument(
    'renew',
    renewMs,
    `must leave two margins of the ttl of ${ttlMs} ms: at most ${latestMs} ms`,
  );
}

function statusOf(key: string, info: LockInfo | undefined): LockStatus {
  if (info === undefined) return { key, held: false, token: 0n, waiting: 0 };
  return {
    key,
    held: info.held,
    token: info.token,
    waiting: info.waiting,
    ...(info.holder === undefined ? undefined : { holder: info.holder.label }),
    ...(info.expiresInMs === undefined ? undefined : { expiresInMs: info.expiresInMs }),
  };
}

/** The application holds it from now on. */
function handle(lease: Lease): Lease {
  lease.isHandle = true;
  return lease;
}

/** A wait that ended is the caller's error; everything else was thrown already. */
function granted(request: ClaimRequest, outcome: ClaimOutcome): Lease {
  if (outcome.status === 'granted') return outcome.lock as Lease;
  throw busyError(request);
}
