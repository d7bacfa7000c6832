/**
 * Options of runs, checked before any traffic and turned into milliseconds. One place for calls, tasks and
 * decorators, so that all of them refuse the same things in the same words.
 */
import type { Backoff, CallOptions, Codec, RunSettings } from '../api/run.js';
import type { OnCrash } from '../machine/run-move.js';
import type { RetryPauses } from '../machine/run-retry.js';
import type { RunPolicy } from '../runtime/run/run-task.js';
import { jsonCodec } from '../runtime/run/run-values.js';
import { parseDuration } from '../value/duration.js';
import { GuardError, invalidArgument } from '../value/error.js';
import { checkFunction, checkOptions } from '../value/options.js';
import { checkTtl } from './locks.js';
import { SCHEDULE_OPTIONS, SERIES_OPTIONS } from './schedule-options.js';

const SETTINGS: readonly (keyof RunSettings)[] = [
  'window',
  'wait',
  'ttl',
  'retry',
  'timeout',
  'stallAfter',
  'onCrash',
  'maxTakeovers',
  'ifFailed',
  'onDuplicate',
  'onUnavailable',
  'startingDeadline',
  'settleTimeout',
  'letGoAfter',
  'codec',
];
/** Names of the options of `guard.run`. */
export const RUN_OPTIONS: readonly string[] = [...SETTINGS, ...SERIES_OPTIONS, 'key', 'input', 'compensate'];
/** Names of the options of `guard.task`. */
export const TASK_OPTIONS: readonly string[] = [...SETTINGS, ...SCHEDULE_OPTIONS, 'key', 'compensate'];
const CALL_OPTIONS: readonly (keyof CallOptions)[] = ['key', 'window', 'wait', 'ifFailed', 'onDuplicate'];

const MAX_COUNT = 1_000;
const MAX_FACTOR = 100;
const ON_CRASH = ['retry', 'fail', 'hold'] as const;
const IF_FAILED = ['keep', 'rerun'] as const;
const ON_DUPLICATE = ['skip', 'result', 'throw'] as const;
const ON_UNAVAILABLE = ['throw', 'skip', 'run-unguarded'] as const;

/** What a guard fills in. */
export interface RunDefaults {
  readonly ttlMs: number;
  readonly minTtlMs: number;
  readonly onUnavailable: 'throw' | 'skip';
}

/**
 * The settings of a task or a call, with every default filled in.
 *
 * @throws GuardError `invalid-argument`: an option is out of its range, or contradicts another.
 */
export function policyOf(
  settings: RunSettings & { readonly key?: unknown },
  defaults: RunDefaults,
): RunPolicy {
  const { retry, codec } = settings;
  if (settings.key !== undefined && settings.window !== undefined) throw keyAndWindow();
  const timeoutMs = optional('timeout', settings.timeout);
  const stallAfterMs = optional('stallAfter', settings.stallAfter);
  if (timeoutMs !== undefined && stallAfterMs !== undefined && stallAfterMs >= timeoutMs) {
    throw new GuardError(
      'invalid-argument',
      `stallAfter (${stallAfterMs} ms) must be shorter than timeout (${timeoutMs} ms)`,
    );
  }
  checkOptions('retry', retry, ['attempts', 'backoff']);
  return {
    windowMs: optional('window', settings.window),
    waitMs: parseDuration('wait', settings.wait ?? 0, { minMs: 0, infinite: true }),
    ttlMs: checkTtl('ttl', settings.ttl, defaults.ttlMs, defaults.minTtlMs),
    attempts: retry === undefined ? 1 : count('retry.attempts', retry.attempts, 1),
    pauses: pausesOf(retry?.backoff),
    timeoutMs,
    stallAfterMs,
    onCrash: oneOf<OnCrash>('onCrash', settings.onCrash, ON_CRASH, 'retry'),
    maxTakeovers: count('maxTakeovers', settings.maxTakeovers ?? 3, 0),
    ifFailed:
      settings.ifFailed === undefined ? undefined : oneOf('ifFailed', settings.ifFailed, IF_FAILED, 'keep'),
    onDuplicate: oneOf('onDuplicate', settings.onDuplicate, ON_DUPLICATE, 'skip'),
    onUnavailable: oneOf('onUnavailable', settings.onUnavailable, ON_UNAVAILABLE, defaults.onUnavailable),
    startingDeadlineMs: optional('startingDeadline', settings.startingDeadline),
    settleTimeoutMs: parseDuration('settleTimeout', settings.settleTimeout ?? '5m'),
    letGoAfterMs: parseDuration('letGoAfter', settings.letGoAfter ?? '30s', { minMs: 0 }),
    codec: codecOf(codec),
  };
}

/** A task's settings with those of one call over them. */
export function withCall(policy: RunPolicy, options: CallOptions | undefined): RunPolicy {
  checkOptions('call options', options, CALL_OPTIONS);
  if (options === undefined) return policy;
  const { wait, window, ifFailed, onDuplicate, key } = options;
  if (key !== undefined && window !== undefined) throw keyAndWindow();
  return {
    ...policy,
    ...(wait === undefined ? {} : { waitMs: parseDuration('wait', wait, { minMs: 0, infinite: true }) }),
    ...(window === undefined ? {} : { windowMs: parseDuration('window', window) }),
    ...(ifFailed === undefined ? {} : { ifFailed: oneOf('ifFailed', ifFailed, IF_FAILED, 'keep') }),
    ...(onDuplicate === undefined
      ? {}
      : { onDuplicate: oneOf('onDuplicate', onDuplicate, ON_DUPLICATE, 'skip') }),
  };
}

function keyAndWindow(): GuardError {
  return new GuardError('invalid-argument', `key and window contradict each other: both name the run`);
}

function optional(argument: string, value: unknown): number | undefined {
  return value === undefined ? undefined : parseDuration(argument, value);
}

function count(argument: string, value: unknown, min: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= MAX_COUNT)
    return value;
  throw invalidArgument(argument, value, `must be a whole number from ${min} to ${MAX_COUNT}`);
}

function within(argument: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value;
  throw invalidArgument(argument, value, `must be a number from ${min} to ${max}`);
}

function oneOf<T extends string>(argument: string, value: unknown, allowed: readonly T[], byDefault: T): T {
  if (value === undefined) return byDefault;
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw invalidArgument(argument, value, `must be one of ${allowed.map((one) => `'${one}'`).join(', ')}`);
}

function pausesOf(backoff: unknown): RetryPauses {
  if (typeof backoff === 'number' || typeof backoff === 'string') {
    const ms = parseDuration('retry.backoff', backoff, { minMs: 0 });
    return { initialMs: ms, factor: 1, maxMs: ms, jitter: 0 };
  }
  checkOptions('retry.backoff', backoff, ['initial', 'factor', 'max', 'jitter']);
  const { initial = '1s', factor = 2, max = '5m', jitter = 0.2 } = (backoff ?? {}) as Backoff;
  const pauses = {
    initialMs: parseDuration('retry.backoff.initial', initial, { minMs: 0 }),
    factor: within('retry.backoff.factor', factor, 1, MAX_FACTOR),
    maxMs: parseDuration('retry.backoff.max', max, { minMs: 0 }),
    jitter: within('retry.backoff.jitter', jitter, 0, 1),
  };
  if (pauses.initialMs <= pauses.maxMs) return pauses;
  throw new GuardError(
    'invalid-argument',
    `retry.backoff.initial (${pauses.initialMs} ms) must not be longer than retry.backoff.max (${pauses.maxMs} ms)`,
  );
}

function codecOf(codec: Codec | undefined): Codec {
  if (codec === undefined) return jsonCodec;
  if (typeof codec !== 'object' || codec === null) throw invalidArgument('codec', codec, 'must be an object');
  checkFunction('codec.encode', codec.encode);
  checkFunction('codec.decode', codec.decode);
  return codec;
}
