/** Carries a sample out, with what it prints caught line by line. */
import { format } from 'node:util';
import { emit } from './compile.js';
import type { Sample } from './samples.js';

type Body = (require: (name: string) => unknown, exports: object, console: object) => Promise<void>;

/**
 * Runs a sample; answers what it printed.
 *
 * @param modules what its imports lead to; it runs in the test's own process, on the sources of the packages.
 */
export async function run(sample: Sample, modules: (name: string) => unknown): Promise<string> {
  let printed = '';
  const print = (...values: unknown[]): void => {
    printed += `${format(...values)}\n`;
  };
  const AsyncFunction = (async () => undefined).constructor as new (...code: string[]) => Body;
  const body = new AsyncFunction('require', 'exports', 'console', emit(sample));
  await body(modules, {}, { log: print, error: print });
  return printed;
}
