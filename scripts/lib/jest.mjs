// One run of jest, answered as numbers.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readJson } from './repo.mjs';
import { runNodeTool } from './run.mjs';

/** Runs projects of jest, all in one: while some of their tests wait, others work. `options` as in `runNodeTool`. */
export function runJestProjects(projects, { args = [], ...options } = {}) {
  // A single name would be spread into its letters, and jest would find no project of such a name.
  if (!Array.isArray(projects)) throw new TypeError(`projects is a list of names, not ${typeof projects}`);
  return runJest([...args, '--selectProjects', ...projects], options);
}

/** Runs jest. A test file that could not even be loaded counts as one failed test. `options` as in `runNodeTool`. */
export async function runJest(args, options) {
  const folder = mkdtempSync(join(tmpdir(), 'guard-jest-'));
  const file = join(folder, 'result.json');
  try {
    const { code, output } = await runNodeTool(
      'jest/bin/jest.js',
      [...args, ...['--json', '--outputFile', file], '--testLocationInResults'],
      options,
    );
    if (!existsSync(file)) return { ok: false, passed: 0, failed: 1, skipped: 0, output };
    const result = readJson(file);
    return {
      ok: code === 0 && result.success,
      passed: result.numPassedTests,
      failed: result.numFailedTests + result.numRuntimeErrorTestSuites,
      skipped: result.numPendingTests + result.numTodoTests,
      output,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
