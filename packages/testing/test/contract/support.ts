/** Runs a suite with a runner of its own, so that a test can look at what came out. */
import type { TestRunner } from '@guard/testing';

/** What became of the cases of a suite, by their titles. */
export interface Outcome {
  readonly passed: string[];
  readonly failed: { readonly title: string; readonly error: unknown }[];
  readonly skipped: string[];
}

/** Defines a suite and runs those of its cases whose group's title begins with `group`, and whose own holds `part`. */
export async function runSuite(
  define: (runner: TestRunner) => void,
  group: string,
  part = '',
): Promise<Outcome> {
  const outcome: Outcome = { passed: [], failed: [], skipped: [] };
  const cases: { readonly title: string; readonly run: () => Promise<void> }[] = [];
  const path: string[] = [];
  const isWanted = (): boolean => path[0]?.startsWith(group) ?? false;
  define({
    describe: (title, inside) => {
      path.push(title);
      inside();
      path.pop();
    },
    it: (title, run) => void (isWanted() && title.includes(part) && cases.push({ title, run })),
    skip: (title) => void (isWanted() && outcome.skipped.push(title)),
  });
  for (const { title, run } of cases) {
    try {
      await run();
      outcome.passed.push(title);
    } catch (error) {
      outcome.failed.push({ title, error });
    }
  }
  return outcome;
}

/** The titles of the cases that failed. */
export function failures({ failed }: Outcome): string[] {
  return failed.map(({ title }) => title);
}
