// What .ci/run runs: the one test command of the README, then every other check, each as a stage with its time.
import { availableParallelism } from 'node:os';
import { allInLanes } from './lib/lanes.mjs';
import { run } from './lib/run.mjs';
import { Stages } from './lib/stages.mjs';

/** How the smoke of containers says that this machine cannot do what it is for. Nothing else may say so. */
const CANNOT_BE_DONE_HERE = 75;
const MAY_BE_SKIPPED = 'test:smoke';
/** No time to keep, and gaps for others: programs with a single thread, and what waits for the network or the disk. */
const BESIDE_OTHERS = [
  // What a later stage needs.
  { 'image for test:smoke': ['test:smoke', '--', '--prepare'] },
  // One after the other: the consumers run under these versions as well.
  { 'versions for test:nodes': ['test:nodes', '--', '--prepare'], 'test:consumers': ['test:consumers'] },
  ...['lint', 'check:packages', 'format:check', 'typecheck', 'api:check', 'depcruise', 'knip'].map(
    (name) => ({
      [name]: [name],
    }),
  ),
];

const stages = new Stages();

await stage('test');
await allInLanes(BESIDE_OTHERS, oneAfterTheOther, availableParallelism() + 1);
// Their tests have times to keep, or use every core themselves.
await stage('test:deep');
await stage('test:nodes', '--', '--others');
await stage('test:smoke');
await stage('demo', '--', '--json');

stages.print();
process.exitCode = stages.failed ? 1 : 0;

async function oneAfterTheOther(work) {
  let ok = true;
  for (const [name, args] of Object.entries(work))
    ok = (await stages.runBesideOthers(name, () => npmRun(args, { capture: true }))) && ok;
  return ok;
}

function stage(...args) {
  return stages.run(args[0], async () => (await npmRun(args)).answer);
}

async function npmRun(args, options) {
  const { code, output } = await run('npm', ['run', '--silent', ...args], options);
  const skipped = args[0] === MAY_BE_SKIPPED && code === CANNOT_BE_DONE_HERE;
  return { answer: skipped ? { skipped: 'nothing was shown; its output says why' } : code === 0, output };
}
