/**
 * The public surface of `@guard/nestjs`, written by hand: nothing is exported by accident.
 */
// the module
export { GuardModule } from './guard-module.js';
export type { GuardModuleAsyncOptions, GuardModuleOptions, GuardRegistrationOptions } from './options.js';
export { getGuardOptionsToken, getGuardToken, GuardedBy, InjectGuard } from './tokens.js';

// what is guarded, and how it is
export { GuardReport } from './report.js';
export type { GuardedPlace } from './report.js';
export type { Scope } from './places.js';
export { GuardHealthIndicator } from './health.js';
export type { GuardHealthDetails, GuardHealthOptions } from './health.js';

// answers by HTTP
export { GuardExceptionFilter } from './exception-filter.js';

// for tests of an application
export { GuardRecorder, GuardTestingModule } from './testing.js';
export type { GuardTestingOptions, Recorded } from './testing.js';
