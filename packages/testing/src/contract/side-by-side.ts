/**
 * A runner that plays cases of a suite at the same time: on a real server nearly all of a case is waiting, and cases
 * share nothing but the server. Runners know "at the same time" within one block only, so themes become the beginning of
 * titles; and they know one limit for all files, while how many cases a machine bears depends on what they do.
 */
import { checkCallback, requireMethods, requireOptions, requireWhole } from '../argument.js';
import type { TestRunner } from './runner.js';

const WAIT_FACTOR = 3;

/** Which cases, and how many of them at a time. */
export interface SideBySideOptions {
  readonly atATime: number;
  /** Which suites are played, by their titles; others are left to another file. Default: all. */
  readonly suites?: (title: string) => boolean;
  /**
   * A case that failed is played once more, one such case at a time, and this is told how it failed. On a busy machine
   * a case on the real time can be late without a defect, and test runners repeat no test that runs at once with
   * others. Default: none is repeated.
   */
  readonly onSecondChance?: (title: string, error: unknown) => void;
}

/**
 * Makes the runner of a suite from the functions of a test runner whose `it` plays cases at once (`it.concurrent` of
 * Jest or Vitest).
 */
export function sideBySide(runner: TestRunner, options: SideBySideOptions): TestRunner {
  requireMethods('runner', runner, 'a TestRunner', ['describe', 'it', 'skip']);
  requireOptions('options', options, ['atATime', 'suites', 'onSecondChance']);
  const { atATime, suites = () => true } = options;
  requireWhole('options.atATime', atATime, 1);
  checkCallback('options.suites', suites);
  const { onSecondChance } = options;
  if (onSecondChance !== undefined) checkCallback('options.onSecondChance', onSecondChance);
  const inTurn = turns(atATime);
  const alone = turns(1);
  let suite: string | undefined;
  let theme = '';
  return {
    describe: (title, define) => {
      if (suite !== undefined) {
        theme = `${title}: `;
        define();
      } else if (suites(title)) {
        runner.describe(title, () => {
          suite = title;
          define();
          suite = undefined;
          theme = '';
        });
      }
    },
    it: (title, run, timeoutMs) => {
      // The runner counts the wait for a turn too.
      const withWaitMs = timeoutMs === undefined ? undefined : timeoutMs * WAIT_FACTOR;
      const name = theme + title;
      const played = async (): Promise<void> => {
        try {
          await inTurn(run);
        } catch (error) {
          if (onSecondChance === undefined) throw error;
          onSecondChance(name, error);
          await alone(run);
        }
      };
      runner.it(name, played, withWaitMs);
    },
    skip: (title, run) => runner.skip(theme + title, run),
  };
}

/** Runs what it is given at once, or when an earlier one is done, in the order of the calls. */
function turns(atATime: number): (run: () => Promise<void>) => Promise<void> {
  let running = 0;
  const line: (() => void)[] = [];
  return async (run) => {
    if (running < atATime) running += 1;
    else await new Promise<void>((resolve) => line.push(resolve));
    try {
      await run();
    } finally {
      const next = line.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
