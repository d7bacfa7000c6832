/**
 * The demo: makes the books, plays the scene, judges what came of it. Ends with 0 when every occurrence was settled
 * once and the total is right to the cent, with 1 otherwise, and with 2 when it was called wrongly.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeededRandom } from '@guard/testing';
import { ensureSchema } from '@guard/typeorm';
import { serveBackends, type ServedBackends } from './backends.js';
import { play, type Scene, type Seen } from './director.js';
import { demoGuard } from './guard.js';
import { Ledger } from './ledger.js';
import { type DemoOptions, occurrencesOf, parseOptions } from './options.js';
import { makePayments, MERCHANTS, type Payments } from './payments.js';
import { keyOf, timeOf } from './seconds.js';
import { count, money, Timeline } from './timeline.js';
import { judge, type RunSeen, type Verdict } from './verdict.js';

/** Starting, takeovers and ending need no more beside the occurrences; what does is broken and has to end. */
const BESIDE_OCCURRENCES_MS = 40_000;
const MAX_PROBLEMS_SHOWN = 12;

const options = parseOptions(process.argv.slice(2));
if ('usage' in options) {
  console.log(options.usage);
} else if ('problem' in options) {
  console.error(`${options.problem}\nnpm run demo -- --help names what can be said.`);
  process.exitCode = 2;
} else if (process.platform === 'win32') {
  console.error('The demo stops and continues processes by signals that Windows does not have; use WSL.');
  process.exitCode = 2;
} else {
  process.exitCode = await demo(options);
}

/** What is played: `occurrences` of which `calm` are not for an outage. */
type Asked = Omit<DemoOptions, 'seed'> & { readonly calm: number };

/** Answers the exit code. */
async function demo({ seed = new SeededRandom().seed, ...options }: DemoOptions): Promise<number> {
  const rest: Asked = { ...options, calm: options.occurrences, occurrences: occurrencesOf(options) };
  const timeline = new Timeline(process.stdout);
  const interrupted = interruption();
  const watchdog = watch(rest.occurrences * 1_000 + BESIDE_OCCURRENCES_MS);
  const folder = mkdtempSync(join(tmpdir(), 'guard-demo-'));
  try {
    const payments = makePayments(seed, rest.occurrences);
    introduce(timeline, seed, rest, payments);
    const file = join(folder, 'ledger.sqlite');
    const verdict = await served(timeline, file, rest, payments, interrupted);
    conclude(timeline, rest, verdict);
    if (rest.json) console.log(JSON.stringify(verdict.figures));
    return verdict.problems.length === 0 ? 0 : 1;
  } catch (error) {
    console.error(`the demo failed: ${error instanceof Error ? error.message : String(error)}`);
    return interrupted.aborted ? 130 : 1;
  } finally {
    clearTimeout(watchdog);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts the servers that are needed, and ends them whatever happens. */
async function served(
  timeline: Timeline,
  file: string,
  options: Asked,
  payments: Payments,
  interrupted: AbortSignal,
): Promise<Verdict> {
  const { served: backends, stores, stop } = await serveBackends(options.backends);
  const outages = { stores: options.outageS === 0 ? [] : stores, seconds: options.outageS };
  try {
    return await performed(timeline, { ...options, file, backends, outages }, payments, interrupted);
  } finally {
    await stop();
  }
}

async function performed(
  timeline: Timeline,
  scene: Scene,
  payments: Payments,
  interrupted: AbortSignal,
): Promise<Verdict> {
  const { file, occurrences, guarded, backends } = scene;
  const ledger = await Ledger.open(file, { create: true });
  try {
    await ledger.fill(payments.deliveries);
    await ensureSchema(ledger.dataSource);
    const seen = await play(scene, timeline, interrupted);
    const runs = guarded ? await runsOf(ledger, backends, seen, occurrences) : undefined;
    const evidence = {
      ...{ owed: payments.owed, postings: await ledger.postings(), balances: await ledger.balances() },
      ...{ runs, refusedWrites: seen.refusedWrites, nodes: seen.nodes, ms: timeline.elapsedMs },
    };
    return judge(evidence, (occurrence) => timeOf(seen.first + occurrence));
  } finally {
    await ledger.close();
  }
}

/** What the run store knows, asked by a guard that runs nothing. */
async function runsOf(
  ledger: Ledger,
  backends: ServedBackends,
  { first }: Seen,
  occurrences: number,
): Promise<readonly (RunSeen | undefined)[]> {
  const { guard, close } = await demoGuard('audit', backends, ledger.dataSource);
  try {
    const runs: (RunSeen | undefined)[] = [];
    for (let second = first; second < first + occurrences; second += 1) {
      const view = await guard.runs.get('settlement', keyOf(second));
      const history = await guard.runs.history('settlement', keyOf(second));
      const completions = history.filter(({ from, to }) => to === 'completed' && from !== to).length;
      runs.push(view === null ? undefined : { ...pick(view.run), completions });
    }
    return runs;
  } finally {
    await close();
  }
}

function pick({ state, takeovers }: Omit<RunSeen, 'completions'>): Omit<RunSeen, 'completions'> {
  return { state, takeovers };
}

function introduce(
  timeline: Timeline,
  seed: number,
  { occurrences, guarded, backends, outageS }: Asked,
  { deliveries, payments, totalCents }: Payments,
): void {
  const where = guarded ? `locks: ${backends.locks}, runs: ${backends.runs}` : 'WITHOUT a guard';
  timeline.say(`Three workers settle the payments of every second, ${where}. Seed ${seed}.`);
  if (outageS > 0) timeline.say(`Each server is taken away for ${outageS} s, one after the other.`);
  timeline.say(
    `${count(payments)} payments to ${MERCHANTS} merchants over ${occurrences} seconds, ` +
      `${count(deliveries.length - payments)} of them delivered twice: ${money(totalCents)} to pay.`,
  );
  timeline.say();
}

function conclude(timeline: Timeline, { guarded }: Asked, { figures, problems }: Verdict): void {
  const { occurrences, completed, duplicates, missed, takeovers, refusedWrites } = figures;
  timeline.say();
  timeline.say(
    `occurrences  ${occurrences} due, ${completed} settled, ${duplicates} doubled, ${missed} missed`,
  );
  timeline.say(`faults       ${takeovers} runs taken over, ${refusedWrites} writes of stale workers refused`);
  timeline.say(
    `balance      ${money(figures.balanceActual)} of ${money(figures.balanceExpected)} expected, ` +
      `${money(figures.balanceActual - figures.balanceExpected)} apart`,
  );
  timeline.say();
  if (problems.length === 0) {
    timeline.say('Every occurrence was settled once, and the total is right to the cent.', 'good');
    return;
  }
  for (const problem of problems.slice(0, MAX_PROBLEMS_SHOWN)) timeline.say(problem, 'fault');
  if (problems.length > MAX_PROBLEMS_SHOWN) {
    timeline.say(`and ${problems.length - MAX_PROBLEMS_SHOWN} more`, 'fault');
  }
  timeline.say();
  timeline.say(guarded ? 'FAILED.' : 'FAILED, as it has to without a guard.', 'fault');
}

/** Aborted by the first Ctrl-C or SIGTERM, so that the demo clears up; a second one ends it at once. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => controller.abort(new Error(`interrupted by ${name}`)));
  }
  return controller.signal;
}

/** Every wait has its limit; this one is for what nobody thought of. Workers are killed on exit. */
function watch(limitMs: number): NodeJS.Timeout {
  return setTimeout(() => {
    console.error(`the demo failed: it did not end within ${limitMs / 1_000} s`);
    process.exit(1);
  }, limitMs);
}
