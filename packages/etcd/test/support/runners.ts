/**
 * Two halves of a contract suite, each for a file of its own. The shortest ttl of etcd is two seconds, so the cases of
 * the port wait for most of their time and run side by side. Those of guards keep times of their own, and run one after
 * the other.
 */
import type { TestRunner } from '@guard/testing';

/** The cases of the port alone. */
export const sideBySide = half(it.concurrent, (title) => !title.startsWith('guard on '));

/** The cases of guards alone. */
export const oneByOne = half(it, (title) => title.startsWith('guard on '));

function half(run: TestRunner['it'], isMine: (title: string) => boolean): TestRunner {
  let depth = 0;
  return {
    describe: (title, define) => {
      if (depth === 0 && !isMine(title)) return;
      describe(title, () => {
        depth += 1;
        define();
        depth -= 1;
      });
    },
    it: run,
    skip: it.skip,
  };
}
