/**
 * Finds every decorated method when the modules are initialised, refuses what would silently not be guarded, and binds
 * the rest; starts the guards when the application has been bootstrapped, and closes them before its clients go.
 */
import { bindGuard, GuardError } from '@guard/core';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { nameIn, problemsOf, quoted, warningsOf } from './checks.js';
import { logFailures } from './failures.js';
import { isScheduledElsewhere } from './metadata.js';
import { type Place, placesOf, scopeOf } from './places.js';
import { pauseWorkers } from './queues.js';
import { GuardRegistration } from './registration.js';
import { entriesOf, GuardReport } from './report.js';
import { hasScheduler, quietTicks, stopSchedulers, switchedOff } from './schedulers.js';
import { bindAnswers, bindShortLived } from './short-lived.js';
import { getGuardToken, guardNameOf } from './tokens.js';

/** One per application. */
@Injectable()
export class GuardExplorer implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('GuardModule');
  private registrations: ReadonlyMap<string, GuardRegistration> = new Map();

  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(GuardReport) private readonly report: GuardReport,
  ) {}

  /** @throws GuardError `invalid-argument` with everything that is wrong, each in a line. */
  onModuleInit(): void {
    const found = this.findRegistrations();
    this.registrations = new Map(found.map((registration) => [registration.name, registration]));
    const places = placesOf(this.discovery);
    const problems = [...twice(found), ...problemsOf(places, this.registrations)];
    if (problems.length > 0) throw refusal(problems);
    for (const place of places) this.bind(place);
    this.bindFactories();
    this.report.entries = entriesOf(places, switchedOff(this.discovery));
    this.report.warnings = [
      ...warningsOf(places, this.registrations, hasScheduler(this.discovery)),
      ...this.otherGuards(),
    ];
    this.listen(places);
    this.tell();
  }

  /**
   * Modules that are loaded later get no hook; what they register is checked when it is made.
   *
   * @throws GuardError `invalid-argument`: a guard of this name is there already.
   */
  checkLater(name: string): void {
    if (this.registrations.has(name)) throw refusal([registeredTimes(name, 2)]);
  }

  /** Nest calls no more hooks of an application that does not come up: where one guard cannot start, all are closed. */
  async onApplicationBootstrap(): Promise<void> {
    const all = [...this.registrations.values()];
    const results = await Promise.allSettled(all.map((registration) => registration.start()));
    const failed = results.findIndex(({ status }) => status === 'rejected');
    const failure = results[failed];
    if (failure?.status !== 'rejected') return;
    this.logger.error(`the guard '${all[failed]?.name}' could not start: ${String(failure.reason)}`);
    await this.closeGuards();
    throw failure.reason;
  }

  /** Before the hook in which applications and their modules close clients; never rejects (L3). */
  async beforeApplicationShutdown(): Promise<void> {
    await this.closeGuards();
  }

  private async closeGuards(): Promise<void> {
    try {
      quietTicks(this.discovery);
      stopSchedulers(this.discovery);
      pauseWorkers(this.discovery, this.logger);
    } catch (error) {
      // Whatever became of somebody else's timers and workers, the guards close.
      this.logger.error(error);
    }
    const closing = this.findRegistrations().map(({ guard }) => guard.close());
    for (const result of await Promise.allSettled(closing)) {
      if (result.status === 'rejected') this.logger.error(result.reason);
    }
  }

  private findRegistrations(): GuardRegistration[] {
    const found = this.discovery.getProviders().map(({ instance }) => instance as unknown);
    return [...new Set(found.filter((one) => GuardRegistration.is(one)))];
  }

  /** A test that puts another guard under the token of one changes what is injected, and nothing else. */
  private otherGuards(): string[] {
    const providers = this.discovery.getProviders();
    return [...this.registrations.values()]
      .filter(({ name, guard }) =>
        providers.some(({ token, instance }) => token === getGuardToken(name) && instance !== guard),
      )
      .map(
        ({ name }) =>
          `what is injected as the guard '${name}' is not the one that guards methods: ` +
          `override getGuardOptionsToken(), which both are made of`,
      );
  }

  private bind(place: Place): void {
    const registration = this.registrations.get(guardNameOf(place.type));
    if (registration === undefined) return;
    if (place.scope === 'singleton') bindGuard(place.target, registration.guard);
    else bindShortLived(place, registration.guard);
  }

  private bindFactories(): void {
    for (const wrapper of this.discovery.getProviders()) {
      if (wrapper.isAlias || scopeOf(wrapper) === 'singleton') continue;
      bindAnswers(wrapper, (type) => this.registrations.get(guardNameOf(type))?.guard);
    }
  }

  private listen(places: readonly Place[]): void {
    for (const { name, guard } of this.registrations.values()) {
      const called = places
        .filter(({ type }) => guardNameOf(type) === name)
        .flatMap((place) =>
          place.methods
            .filter((method) => isScheduledElsewhere(method, place.target))
            .map((method) => nameIn(place, method)),
        );
      logFailures(guard, this.logger, (task) => called.includes(task));
    }
  }

  private tell(): void {
    for (const { name, guard, places, starts, tasks } of this.registrations.values()) {
      const only = starts === 'here' && tasks !== undefined ? ` for ${quoted(tasks)} only` : '';
      this.logger.log(`guard '${name}': namespace '${guard.namespace}', ${places}, ${STARTS[starts]}${only}`);
    }
    for (const line of this.report.lines()) this.logger.log(line);
    for (const warning of this.report.warnings) this.logger.warn(warning);
  }
}

const STARTS = {
  here: 'a started node',
  idle: 'a started node for no tasks',
  elsewhere: 'started by other processes',
  nowhere: 'started nowhere',
  none: 'for locks only',
} as const;

function twice(found: readonly GuardRegistration[]): string[] {
  const names = found.map(({ name }) => name);
  return [...new Set(names.filter((name, place) => names.indexOf(name) !== place))].map((name) =>
    registeredTimes(name, names.filter((one) => one === name).length),
  );
}

function registeredTimes(name: string, times: number): string {
  return (
    `the guard '${name}' is registered ${times} times: ` +
    `call GuardModule.forRoot once, in the root module, or give each registration a name of its own`
  );
}

function refusal(problems: readonly string[]): GuardError {
  const lines = problems.map((problem) => `\n- ${problem}`).join('');
  return new GuardError('invalid-argument', `not everything that looks guarded would be:${lines}`);
}
