// One run of jest, answered as numbers.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readJson, root } from './repo.mjs';
import { runNodeTool } from './run.mjs';
import { whatWasNotShown } from './shown.mjs';

const REPORTER = join(root, 'scripts', 'jest-files.mjs');

/** Runs projects of jest, all in one: while some of their tests wait, others work. `options` as in `runNodeTool`. */
export function runJestProjects(projects, { args = [], ...options } = {}) {
  return runJest({ projects, args }, options);
}

/**
 * Runs jest on projects, in them on the files whose path matches one of `patterns`, or on `paths`. A test file that could
 * not even be loaded counts as one failed test. Each of those that is named must show something, or it is not `ok`; the
 * reason is printed, or stands in `output`. `options` as in `runNodeTool`.
 */
export async function runJest({ projects, patterns = [], paths = [], args = [] }, options = {}) {
  // A single name would be spread into its letters, and jest would find no project of such a name.
  for (const [name, list] of Object.entries({ projects, patterns, paths }))
    if (!Array.isArray(list)) throw new TypeError(`${name} is a list, not ${typeof list}`);
  const folder = mkdtempSync(join(tmpdir(), 'guard-jest-'));
  const file = join(folder, 'files.json');
  try {
    const wanted = [
      ...['--selectProjects', ...projects],
      ...(patterns.length === 0 ? [] : ['--testPathPatterns', ...patterns]),
      ...(paths.length === 0 ? [] : ['--runTestsByPath', ...paths]),
      ...['--reporters=default', `--reporters=${REPORTER}`],
    ];
    const { env = process.env, ...others } = options;
    const { code, output } = await runNodeTool('jest/bin/jest.js', [...args, ...wanted], {
      ...others,
      env: { ...env, GUARD_JEST_FILES: file },
    });
    if (!existsSync(file)) return { ok: false, passed: 0, failed: 1, skipped: 0, output };
    return answerOf(readJson(file), { code, output, asked: { projects, patterns, paths }, ...others });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function answerOf({ files, broken, planned }, { code, output, asked, capture }) {
  const sum = (field) => files.reduce((total, file) => total + file[field], 0);
  const missing = whatWasNotShown(asked, files).map((sentence) => `${sentence}\n`);
  if (!capture) for (const sentence of missing) process.stderr.write(sentence);
  return {
    ok: code === 0 && missing.length === 0,
    passed: sum('passed'),
    failed: sum('failed') + broken,
    skipped: sum('skipped') + planned,
    output: output + missing.join(''),
  };
}
