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
import { problemsOf, warningsOf } from './checks.js';
import { type Place, placesOf, scopeOf } from './places.js';
import { GuardRegistration } from './registration.js';
import { entriesOf, GuardReport } from './report.js';
import { bindAnswers, bindShortLived } from './short-lived.js';
import { guardNameOf } from './tokens.js';

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
    this.report.entries = entriesOf(places);
    this.report.warnings = warningsOf(places);
    this.tell();
  }

  /** Nest calls no more hooks of an application that does not come up: where one guard cannot start, all are closed. */
  async onApplicationBootstrap(): Promise<void> {
    const starting = [...this.registrations.values()].map((registration) => registration.start());
    const failure = (await Promise.allSettled(starting)).find(({ status }) => status === 'rejected');
    if (failure?.status !== 'rejected') return;
    await this.closeGuards();
    throw failure.reason;
  }

  /** Before the hook in which applications and their modules close clients; never rejects (L3). */
  async beforeApplicationShutdown(): Promise<void> {
    await this.closeGuards();
  }

  private async closeGuards(): Promise<void> {
    const closing = this.findRegistrations().map(({ guard }) => guard.close());
    for (const result of await Promise.allSettled(closing)) {
      if (result.status === 'rejected') this.logger.error(result.reason);
    }
  }

  private findRegistrations(): GuardRegistration[] {
    const found = this.discovery.getProviders().map(({ instance }) => instance as unknown);
    return [...new Set(found.filter((one) => GuardRegistration.is(one)))];
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

  private tell(): void {
    for (const { name, guard, places, starts } of this.registrations.values()) {
      this.logger.log(`guard '${name}': namespace '${guard.namespace}', ${places}, ${STARTS[starts]}`);
    }
    for (const line of this.report.lines()) this.logger.log(line);
    for (const warning of this.report.warnings) this.logger.warn(warning);
  }
}

const STARTS = {
  here: 'a started node',
  elsewhere: 'started by other processes',
  nowhere: 'started nowhere',
  none: 'for locks only',
} as const;

function twice(found: readonly GuardRegistration[]): string[] {
  const names = found.map(({ name }) => name);
  return [...new Set(names.filter((name, place) => names.indexOf(name) !== place))].map(
    (name) =>
      `the guard '${name}' is registered ${names.filter((one) => one === name).length} times: ` +
      `call GuardModule.forRoot once, in the root module, or give each registration a name of its own`,
  );
}

function refusal(problems: readonly string[]): GuardError {
  const lines = problems.map((problem) => `\n- ${problem}`).join('');
  return new GuardError('invalid-argument', `not everything that looks guarded would be:${lines}`);
}
