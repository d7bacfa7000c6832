// What .ci/run runs: the one test command of the README, then every other check, each as a stage with its time.
import { availableParallelism } from 'node:os';
import { allInLanes } from './lib/lanes.mjs';
import { run } from './lib/run.mjs';
import { Stages } from './lib/stages.mjs';

/** How the smoke of containers says that this machine cannot do what it is for. Nothing else may say so. */
const CANNOT_BE_DONE_HERE = 75;
const MAY_BE_SKIPPED = 'test:smoke';
/** Programs with a single thread, and no time to keep; the longest first. */
const CHECKS = ['lint', 'check:packages', 'format:check', 'typecheck', 'api:check', 'depcruise', 'knip'];
/** What later stages need and that waits for the network most of the while. */
const PREPARATIONS = {
  'image for test:smoke': ['test:smoke', '--', '--prepare'],
  'versions for test:nodes': ['test:nodes', '--', '--prepare'],
};

const stages = new Stages();

await stage('test');
await allInLanes(
  [...Object.entries(PREPARATIONS), ...CHECKS.map((name) => [name, [name]])],
  ([name, args]) => stages.runBesideOthers(name, () => npmRun(args, { capture: true })),
  availableParallelism() + 1,
);
// Their tests have times to keep, or use every core themselves.
await stage('test:deep');
await stage('test:nodes');
await stage('test:consumers');
await stage('test:smoke');
await stage('demo', '--', '--json');

stages.print();
process.exitCode = stages.failed ? 1 : 0;

function stage(...args) {
  return stages.run(args[0], async () => (await npmRun(args)).answer);
}

async function npmRun(args, options) {
  const { code, output } = await run('npm', ['run', '--silent', ...args], options);
  const skipped = args[0] === MAY_BE_SKIPPED && code === CANNOT_BE_DONE_HERE;
  return { answer: skipped ? { skipped: 'nothing was shown; its output says why' } : code === 0, output };
}
