/** What can be said on the command line. Whatever is not known is refused before anything is started. */
import { parseArgs } from 'node:util';
import { BACKEND_NAMES, serversOf, type BackendName, type Backends } from './backends.js';

/** What the demo was asked for. */
export interface DemoOptions {
  readonly seed: number | undefined;
  readonly occurrences: number;
  /** For how many seconds each server is taken away, one after the other; 0: none is. */
  readonly outageS: number;
  readonly guarded: boolean;
  readonly json: boolean;
  readonly backends: Backends;
}

/** What the command line comes to. */
export type Wish = DemoOptions | { readonly usage: string } | { readonly problem: string };

const DEFAULT_OCCURRENCES = 20;
/** Fewer leave no time between the fault of one worker and that of the other. */
const MIN_OCCURRENCES = 6;
/** The demo stays under a minute. */
const MAX_OCCURRENCES = 40;
const MAX_OUTAGE_S = 15;
/** Beside its outage: to start again, and to show that work goes on. */
const BACK_S = 2;
const MAX_SEED = 2 ** 31 - 1;

const USAGE = `npm run demo -- [options]

  --json            print the figures as one JSON object in the last line
  --unguarded       take the guard out: the demo then fails, and says what was doubled
  --seed N          make the same payments again (0 to ${MAX_SEED})
  --occurrences N   how many seconds to settle (${MIN_OCCURRENCES} to ${MAX_OCCURRENCES}, default ${DEFAULT_OCCURRENCES})
  --backend NAME    where locks and runs live: ${BACKEND_NAMES.join(', ')} (default ${BACKEND_NAMES[0]})
  --locks NAME      where locks live, --runs NAME where runs live
  --outage S        take each server away (SIGKILL) for S seconds (1 to ${MAX_OUTAGE_S}), one after the other; the
                    occurrences become that many more
  --help            this text`;

/** Reads the command line. */
export function parseOptions(args: readonly string[]): Wish {
  try {
    return parsed(args);
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

function parsed(args: readonly string[]): Wish {
  const { values } = parseArgs({
    args: [...args],
    strict: true,
    allowPositionals: false,
    options: {
      json: { type: 'boolean', default: false },
      unguarded: { type: 'boolean', default: false },
      seed: { type: 'string' },
      occurrences: { type: 'string' },
      backend: { type: 'string' },
      locks: { type: 'string' },
      runs: { type: 'string' },
      outage: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const { backend, locks = backend, runs = backend, seed, occurrences, outage } = values;
  if (values.help) return { usage: USAGE };
  const backends = { locks: backendName(locks), runs: backendName(runs) };
  return {
    seed: seed === undefined ? undefined : whole('--seed', seed, 0, MAX_SEED),
    occurrences:
      occurrences === undefined
        ? DEFAULT_OCCURRENCES
        : whole('--occurrences', occurrences, MIN_OCCURRENCES, MAX_OCCURRENCES),
    outageS: outage === undefined ? 0 : outageOf(outage, backends, !values.unguarded),
    guarded: !values.unguarded,
    json: values.json,
    backends,
  };
}

/** Seconds, with or without their unit. */
function outageOf(text: string, backends: Backends, guarded: boolean): number {
  const seconds = whole('--outage', text.replace(/s$/, ''), 1, MAX_OUTAGE_S);
  if (!guarded || serversOf(backends).length === 0) {
    throw new Error(
      '--outage needs a guard whose locks or runs live on a server, as with --backend postgres',
    );
  }
  return seconds;
}

/** How many occurrences there are: those that were asked for, and those of the outages. */
export function occurrencesOf({
  occurrences,
  outageS,
  backends,
}: Pick<DemoOptions, 'occurrences' | 'outageS' | 'backends'>): number {
  return outageS === 0 ? occurrences : occurrences + serversOf(backends).length * (outageS + BACK_S);
}

function whole(flag: string, text: string, min: number, max: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw new Error(`${flag} takes a whole number from ${min} to ${max}, got '${text}'`);
}

function backendName(name: string = BACKEND_NAMES[0] ?? ''): BackendName {
  const known = BACKEND_NAMES.find((candidate) => candidate === name);
  if (known !== undefined) return known;
  throw new Error(`there is no backend '${name}' in this version; there is: ${BACKEND_NAMES.join(', ')}`);
}
