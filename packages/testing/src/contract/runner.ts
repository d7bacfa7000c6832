/**
 * How a contract suite speaks to a test runner. The functions are handed in, so the suites depend on no runner; a case
 * is a value, so that the same list runs under any of them, and a case that an adapter cannot run is reported by its
 * name and the reason instead of being left out.
 */
import { requireOneOf } from '../argument.js';
import type { Timeline } from './timeline.js';

/**
 * The functions of a test runner. Those of Jest and Vitest fit as they are (`skip: it.skip`). Mocha's `it` knows no
 * third argument: hand in `it: (title, run, timeoutMs = 0) => void it(title, run).timeout(timeoutMs)`.
 */
export interface TestRunner {
  describe(title: string, define: () => void): void;
  /** `timeoutMs`: how long the case may take. A runner that cuts it short reports defects that are none. */
  it(title: string, run: () => Promise<void>, timeoutMs?: number): void;
  /** Reports a case as skipped; the reason stands in the title. */
  skip(title: string, run: () => Promise<void>): void;
}

/** `quick`: scaled down, a whole suite within a minute. `full`: as the cases are written. */
export type Profile = 'quick' | 'full';

/** What a suite knows about its world before it runs. */
export interface World {
  /** The cases run on a virtual clock. */
  readonly virtualTime: boolean;
}

/** One sentence of the contract. */
export interface ContractCase<Stage, Traits> {
  /** A sentence; a promise or a case it shows stands in brackets. */
  readonly title: string;
  /** Why an adapter with these traits cannot run it, or `undefined`: it can. */
  readonly unless?: (traits: Traits, world: World) => string | undefined;
  readonly run: (stage: Stage) => Promise<void>;
}

/** A stage that a case runs on, made for this case alone. */
export interface Opened<Stage> {
  readonly stage: Stage;
  /** Ends a case that went well, and looks at what every case must leave behind. */
  readonly close: () => Promise<void>;
  /** What the case draws from: printed when it fails, so that it can be played again. */
  readonly seed?: number;
  /** Frees everything, whatever the case came to. */
  readonly cleanup: () => Promise<void>;
}

/** The part of a suite's options that all suites share. */
export interface SuiteOptions {
  readonly runner: TestRunner;
  /** Names the adapter and its configuration in the titles. */
  readonly name: string;
  /** Whether `create` gives places on a virtual clock. Default `false`: the real time. */
  readonly virtualTime?: boolean;
  /** Default: `GUARD_PROFILE` of the environment, else `'quick'`. */
  readonly profile?: Profile;
  /** How long one case may take in real time. Default: a minute (`quick`), ten minutes (`full`). */
  readonly caseTimeoutMs?: number;
}

/** A theme: its title and its cases. */
export type Theme<Stage, Traits> = readonly [title: string, cases: readonly ContractCase<Stage, Traits>[]];

/** Hands the cases of all themes to the runner. */
export function defineSuite<Stage, Traits>(
  options: SuiteOptions,
  subject: string,
  traits: Traits,
  themes: readonly Theme<Stage, Traits>[],
  open: () => Promise<Opened<Stage>>,
): void {
  const { runner, name, profile = defaultProfile() } = options;
  const timeoutMs = options.caseTimeoutMs ?? (profile === 'quick' ? 60_000 : 600_000);
  runner.describe(`${subject}: ${name} (${profile})`, () => {
    for (const [theme, cases] of themes) {
      runner.describe(theme, () => {
        for (const one of cases) {
          const reason = one.unless?.(traits, { virtualTime: options.virtualTime ?? false });
          if (reason !== undefined) runner.skip(`${one.title} (skipped: ${reason})`, () => Promise.resolve());
          else runner.it(one.title, () => runCase(one, open), timeoutMs);
        }
      });
    }
  });
}

async function runCase<Stage, Traits>(
  one: ContractCase<Stage, Traits>,
  open: () => Promise<Opened<Stage>>,
): Promise<void> {
  const { stage, close, cleanup, seed } = await open();
  try {
    await one.run(stage);
    await close();
  } catch (error) {
    // The case's own error is the one to see; what cleaning up finds after it is a consequence.
    await cleanup().catch(() => undefined);
    if (seed !== undefined && error instanceof Error)
      error.message += `\nPlay it again with GUARD_SEED=${seed}`;
    throw error;
  }
  await cleanup();
}

/** How much an adapter's answers may be late on the timeline of a case. */
export function slackMs(time: Timeline): number {
  return time.virtual ? 2 : 150;
}

/**
 * The profile that the environment asks for: `npm run cases` asks for the full one.
 *
 * @throws GuardError `invalid-argument`: it asks for one that does not exist.
 */
export function defaultProfile(): Profile {
  const profile = process.env['GUARD_PROFILE'] || 'quick';
  requireOneOf('GUARD_PROFILE', profile, ['quick', 'full']);
  return profile as Profile;
}
