import { impurities } from './support/impurity-rules.js';
import { librarySources, parse, sample } from './support/source.js';

/** The only files that may read the real clock or make real random numbers. */
const REAL = ['packages/core/src/runtime/clock.ts', 'packages/core/src/runtime/random.ts'];
/** What a guard's clock cannot be for, each with its reason. */
const LOOKED_AT = [
  // The time that all processes of a machine share, behind locks and a log that they share.
  'packages/typeorm/src/machine-time.ts: process.hrtime',
  'packages/testing/src/process/shared-hold-log.ts: process.hrtime',
  // Makes a worker's wall clock wrong.
  'packages/testing/src/process/bootstrap.ts: Real = Date',
  // Says which server a test ran against.
  'packages/testing/src/servers/announce.ts: process.stderr',
];

describe('determinism', () => {
  it('keeps time, chance, console and process.exit out of library sources', () => {
    const sources = librarySources().filter(({ path }) => !REAL.includes(path));
    const found = sources.flatMap((source) => impurities(parse(source)));
    const known = (problem: string) => LOOKED_AT.some((one) => problem.replace(/:\d+:/, ':').startsWith(one));
    expect(found.filter((problem) => !known(problem))).toEqual([]);
  });

  it.each([
    'Date.now()',
    'const now = Date.now;',
    'new Date()',
    'new Date',
    'Date()',
    'Math.random()',
    "console.log('x')",
    'process.exit(1)',
    "Date['now']()",
    'globalThis.Date.now()',
    'const { now } = Date;',
    'performance.now()',
    'process.hrtime.bigint()',
    'globalThis.setTimeout(f, 1)',
    'setTimeout(f, 1)',
    'AbortSignal.timeout(5)',
    "const D = globalThis['Date'];",
    'const { random } = Math;',
    'const { random: draw } = globalThis.Math;',
    'const M = Math;',
    'const { exit } = process;',
    'const node = process;',
    'process.exitCode = 1',
    'process.abort()',
    "process.stdout.write('x')",
    "process['stderr']",
    'process.uptime()',
    'crypto.randomUUID()',
    "import { randomUUID } from 'node:crypto';",
    "import { exit } from 'node:process';",
    "import { stdout as out } from 'process';",
    "import node from 'node:process';",
    "import * as node from 'node:process';",
    "import { randomFillSync } from 'node:crypto';",
    'crypto.randomFillSync(bytes)',
    'crypto.randomInt(3)',
    'global.setTimeout(f, 1)',
    'globalThis!.setTimeout(f, 1)',
    '(globalThis as Globals).setTimeout(f, 1)',
    'Math!.random()',
    '(Math).random()',
    "globalThis['Math'].random()",
    'const M = Math!;',
    'const { random } = Math!;',
    'const timers = { start: setTimeout };',
    "import * as timers from 'node:timers';",
    "import timers from 'timers/promises';",
    "export { exit } from 'node:process';",
    "const { exit } = require('node:process');",
    "const node = await import('process');",
    "import { setTimeout as start } from 'node:timers';",
  ])('sees %s', (text) => expect(impurities(sample(text))).toHaveLength(1));

  it.each([
    'new Date(ms)',
    'x instanceof Date',
    'let at: Date',
    'clock.now()',
    'const { max } = Math;',
    'const process = start();',
    'xs.map(Math.floor)',
    'const { pid } = process;',
    "import process from 'node:process';",
    "import { pid } from 'node:process';",
    'const own = { setTimeout: start };',
    '// Date.now()',
    'const text = "console.log"',
  ])('accepts %s', (text) => expect(impurities(sample(text))).toEqual([]));
});
