// What can be said on the command line. Whatever is not known is refused before anything is installed, built or started,
// so this file, and what it imports, uses nothing but Node.
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readReport } from './report/read.mjs';

export const BACKENDS = ['memory', 'sqlite', 'postgres', 'mariadb', 'redis', 'etcd', 'etcd-cluster'];
export const SCENARIO_NAMES = ['uncontended', 'throughput', 'contention', 'expiry', 'hold', 'run', 'start'];

const MAX_SEED = 2 ** 31 - 1;

const USAGE = `npm run bench -- [options]

  --backend NAME,…    ${BACKENDS.join(', ')} (default: all of them)
  --only NAME,…       ${SCENARIO_NAMES.join(', ')} (default: all of them)
  --contender NAME,…  some contenders alone, such as guard,raw or 'guard,redlock, poll 10 ms'
  --quick             short rounds: a look, about a minute for one backend
  --json FILE         write every figure
  --html FILE         write a page with charts
  --compare FILE      say what moved since a report that --json wrote
  --seed N            the moments of the faults (0 to ${MAX_SEED}, default 1)
  --help              this text`;

/** The options, or what is to be said instead of playing: `{ usage }` or `{ problem }`. */
export function readOptions(args) {
  try {
    return parsed(args);
  } catch (error) {
    return { problem: error.message };
  }
}

/** The same for a program: says what is to be said, and ends it where nothing is to be played. */
export function optionsOrEnd(args) {
  const options = readOptions(args);
  if (options.usage !== undefined) {
    console.log(options.usage);
    process.exit(0);
  }
  if (options.problem !== undefined) {
    console.error(`${options.problem}\n\n${USAGE}`);
    process.exit(2);
  }
  return options;
}

function parsed(args) {
  const name = { type: 'string' };
  const { values, tokens } = parseArgs({
    args,
    tokens: true,
    options: {
      ...{ quick: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
      ...{ only: name, backend: name, contender: name, json: name, html: name, compare: name },
      seed: { type: 'string', default: '1' },
    },
  });
  if (values.help) return { usage: USAGE };
  once(tokens);
  for (const option of ['json', 'html']) writable(option, values[option]);
  if (values.json !== undefined && values.html !== undefined && resolve(values.json) === resolve(values.html))
    throw new Error(`--json and --html: both are '${values.json}'`);
  if (values.compare !== undefined) readReport(values.compare);
  return {
    ...values,
    backends: chosen('backend', values.backend, BACKENDS),
    scenarios: chosen('only', values.only, SCENARIO_NAMES),
    contenders: namesIn('contender', values.contender),
    seed: seedOf(values.seed),
  };
}

/** The last of them would win, and nothing would say so. */
function once(tokens) {
  const names = tokens.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new Error(`--${twice} is given twice; several names stand in one, as A,B`);
}

/** A comma with a space after it is part of a name, as in `redlock, poll 10 ms`. */
function namesIn(option, text) {
  const names = text?.split(/,(?! )/);
  if (names?.includes('')) throw new Error(`--${option}: a name is empty in '${text}'`);
  return names && [...new Set(names)];
}

function chosen(option, text, known) {
  if (text === undefined) return known;
  const names = text.split(',');
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`--${option} has no '${unknown}'; it has ${known.join(', ')}`);
  return [...new Set(names)];
}

function seedOf(text) {
  const seed = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
  if (seed <= MAX_SEED) return seed;
  throw new Error(`--seed takes a whole number from 0 to ${MAX_SEED}, got '${text}'`);
}

/** A report of an hour should not be lost to a folder that is not there. */
function writable(option, file) {
  if (file === undefined) return;
  if (file === '') throw new Error(`--${option} takes the name of a file`);
  const there = existsSync(file);
  if (there && statSync(file).isDirectory()) throw new Error(`--${option}: '${file}' is a folder`);
  try {
    accessSync(there ? file : dirname(resolve(file)), constants.W_OK);
  } catch {
    throw new Error(`--${option}: '${file}' cannot be written`);
  }
}
