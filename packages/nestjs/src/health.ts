/**
 * Health for @nestjs/terminus, in the form that its indicators have; nothing of it is imported. What a guard knows of
 * itself is asked for at once, and its backends are asked for real.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import {
  checkOptions,
  type Clock,
  type Duration,
  type GuardHealth,
  GuardError,
  parseDuration,
  systemClock,
} from '@guard/core';
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { GuardRegistration } from './registration.js';
import { checkName } from './options.js';
import { DEFAULT_GUARD_NAME } from './tokens.js';

const RESOLUTION_MS = 20;
const NS_PER_MS = 1_000_000;
/** Missed announcements from which on the others count this node as gone. */
const GONE = 3;

/** Options of one check. */
export interface GuardHealthOptions {
  /** Name of the guard. Default: the one that is registered without a name. */
  readonly name?: string;
  /** From here on a blocked event loop is a fault: leases are renewed too late. Default `'5s'`. */
  readonly maxLag?: Duration;
  /** How long each backend has to answer. Default `'3s'`. */
  readonly timeout?: Duration;
}

/** What a check tells beside its `status`. */
export interface GuardHealthDetails extends Omit<GuardHealth, 'unavailable'> {
  readonly status: 'up' | 'down';
  readonly locks: 'up' | 'down';
  /** Absent where the guard keeps no runs. */
  readonly runs?: 'up' | 'down';
  /** The longest delay of the event loop since the last check. */
  readonly loopLagMs: number;
  /** Why it is down. */
  readonly reasons?: readonly string[];
}

/**
 * Down where the lock backend or the run store does not answer, this node's announcements fail, its clock is so wrong
 * that it plans nothing, the event loop was blocked too long, or the guard is closed. While the first ones last, the
 * node begins no occurrences by itself, and goes on when they are over.
 *
 * @example
 * `@HealthCheck() @Get() check() { return this.health.check([() => this.guard.check('guard')]); }`
 */
@Injectable()
export class GuardHealthIndicator implements OnModuleInit, OnApplicationShutdown {
  private readonly loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

  constructor(@Inject(DiscoveryService) private readonly discovery: DiscoveryService) {}

  onModuleInit(): void {
    this.loop.enable();
  }

  onApplicationShutdown(): void {
    this.loop.disable();
  }

  /** @throws GuardError `invalid-argument`: no such guard or option. A fault of a backend is a result, not an error. */
  async check<K extends string>(
    key: K,
    options: GuardHealthOptions = {},
  ): Promise<Record<K, GuardHealthDetails>> {
    checkOptions('health options', options, ['name', 'maxLag', 'timeout']);
    const registration = this.registrationOf(options.name ?? DEFAULT_GUARD_NAME);
    const maxLagMs = parseDuration('maxLag', options.maxLag ?? '5s');
    const timeoutMs = parseDuration('timeout', options.timeout ?? '3s');
    const { guard, hasRuns } = registration;
    const clock = registration.options.clock ?? systemClock;
    const answers = (asked: Promise<unknown>): Promise<'up' | 'down'> => within(clock, timeoutMs, asked);
    const [locks, runs] = await Promise.all([
      answers(guard.inspect('@guard/health')),
      hasRuns ? answers(guard.runs.get('@guard/health', 'none')) : undefined,
    ]);
    const { unavailable: _told, ...health } = guard.health();
    const loopLagMs = this.takeLagMs();
    const reasons = [
      ...(locks === 'down' ? ['the lock backend does not answer'] : []),
      ...(runs === 'down' ? ['the run store does not answer'] : []),
      ...faultsOf(health),
      ...(loopLagMs > maxLagMs ? [`the event loop was blocked for ${loopLagMs} ms`] : []),
    ];
    const details: GuardHealthDetails = {
      status: reasons.length === 0 ? 'up' : 'down',
      locks,
      ...(runs === undefined ? {} : { runs }),
      ...health,
      loopLagMs,
      ...(reasons.length === 0 ? {} : { reasons }),
    };
    return { [key]: details } as Record<K, GuardHealthDetails>;
  }

  private takeLagMs(): number {
    const maxMs = this.loop.max / NS_PER_MS - RESOLUTION_MS;
    this.loop.reset();
    return Math.max(Math.round(maxMs), 0);
  }

  private registrationOf(name: string): GuardRegistration {
    const wanted = checkName(name);
    for (const { instance } of this.discovery.getProviders()) {
      const found: unknown = instance;
      if (GuardRegistration.is(found) && found.name === wanted) return found;
    }
    throw new GuardError('invalid-argument', `no guard is registered under the name '${wanted}'`);
  }
}

function faultsOf({ state, missedHeartbeats, plans, skewMs }: Omit<GuardHealth, 'unavailable'>): string[] {
  if (state === 'closed') return ['the guard is closed'];
  if (state === 'idle') return [];
  if (missedHeartbeats >= GONE) return [`this node could not announce itself ${missedHeartbeats} times`];
  return plans ? [] : [`this machine's clock is ${skewMs ?? 0} ms off: the node plans nothing`];
}

function within(clock: Clock, timeoutMs: number, asked: Promise<unknown>): Promise<'up' | 'down'> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(() => resolve('down'), timeoutMs, { ref: false });
    const settle = (answer: 'up' | 'down') => (): void => {
      timer.cancel();
      resolve(answer);
    };
    asked.then(settle('up'), settle('down'));
  });
}
