/**
 * The module. Each registration is a dynamic module of its own; what finds decorated methods and starts and ends guards
 * is one static module that all of them import, so it is there once however often this one is imported.
 */
import type { Guard } from '@guard/core';
import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { GuardExplorer } from './explorer.js';
import { GuardExplorerModule } from './explorer-module.js';
import {
  checkAsync,
  type GuardModuleAsyncOptions,
  type GuardModuleOptions,
  type GuardRegistrationOptions,
  partsOf,
} from './options.js';
import { type AroundOptions, GuardRegistration } from './registration.js';
import { DEFAULT_GUARD_NAME, getGuardOptionsToken, getGuardToken, registrationToken } from './tokens.js';

/**
 * Guards the decorated methods of every provider and controller.
 *
 * Register each guard once, in the root module: two registrations of one name are refused at boot.
 *
 * @example
 * GuardModule.forRoot({ locks: redisLocks(fromIoredis(client)), runs: typeormRuns(dataSource), namespace: 'billing' })
 */
@Module({ imports: [GuardExplorerModule] })
export class GuardModule {
  /**
   * Registers a guard.
   *
   * @throws GuardError `invalid-argument` for options that are none; what `createGuard` refuses is thrown at boot.
   */
  static forRoot(options: GuardModuleOptions & GuardRegistrationOptions): DynamicModule {
    const { found, made } = partsOf(options);
    return moduleOf(found, [], (provide) => ({ provide, useValue: made }));
  }

  /** The same with options that need other providers: an injected client, a `DataSource`, the configuration. */
  static forRootAsync(options: GuardModuleAsyncOptions): DynamicModule {
    checkAsync(options);
    const { imports = [], inject = [], useFactory } = options;
    return moduleOf(options, imports, (provide) => ({ provide, inject, useFactory }));
  }
}

function moduleOf(
  { name = DEFAULT_GUARD_NAME, global = true }: GuardRegistrationOptions,
  imports: NonNullable<DynamicModule['imports']>,
  optionsUnder: (token: symbol) => Provider,
): DynamicModule {
  const [options, registration, guard] = [
    getGuardOptionsToken(name),
    registrationToken(name),
    getGuardToken(name),
  ];
  return {
    module: GuardModule,
    global,
    imports,
    providers: [
      optionsUnder(options),
      {
        provide: registration,
        inject: [options, GuardExplorer],
        useFactory: (given: AroundOptions, explorer: GuardExplorer) => {
          explorer.checkLater(name);
          return new GuardRegistration(name, given);
        },
      },
      { provide: guard, inject: [registration], useFactory: ({ guard }: GuardRegistration): Guard => guard },
    ],
    exports: [guard],
  };
}
