// `npm test`: everything between a fresh clone and a verdict. Uses nothing but Node until dependencies are installed.
import { availableParallelism } from 'node:os';
import { fetchPackages, provideNativeModules, whyInstall } from './lib/install.mjs';
import { runJestProjects } from './lib/jest.mjs';
import { run } from './lib/run.mjs';
import { provideServerPrograms } from './lib/server-programs.mjs';
import { Stages } from './lib/stages.mjs';

const WORKERS = Math.max(5, availableParallelism() - 2);

const stages = new Stages();
const totals = { passed: 0, failed: 0, skipped: 0 };

// The programs of Debian come while npm brings packages: both wait for the network.
const [there] = await Promise.all([
  dependenciesAreThere(),
  stages.run('server programs', provideServerPrograms),
]);
if (there) {
  const build = stages.run('build', async () => (await script('build.mjs', '--unchecked')).code === 0);
  await Promise.all([
    // What waits for servers and processes most of the while begins as soon as it can.
    Promise.all([stages.run('native modules', provideNativeModules), build]).then(() =>
      stages.run('tests: unit, examples, servers', () =>
        test(['unit', 'examples', 'servers'], { args: [`--maxWorkers=${WORKERS}`] }),
      ),
    ),
    // What only calculates fills the gaps: first those of the native build, then those of the waiting tests.
    build.then(calculate),
  ]);
}

stages.print();
console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = stages.failed ? 1 : 0;

async function dependenciesAreThere() {
  return stages.run('dependencies', async () => {
    const reason = whyInstall();
    console.log(reason ?? 'node_modules is what package-lock.json says');
    return !reason || fetchPackages();
  });
}

/** One after the other: each of them is as fast as its core. Types are not checked here (`npm run typecheck`). */
async function calculate() {
  for (const project of ['structure', 'virtual'])
    await stages.runBesideOthers(`tests: ${project}`, () => testBeside([project]));
}

async function test(projects, options) {
  const { ok, passed, failed, skipped, output } = await runJestProjects(projects, options);
  totals.passed += passed;
  totals.failed += failed;
  totals.skipped += skipped;
  return options?.capture ? { answer: ok, output } : ok;
}

function testBeside(projects) {
  return test(projects, { args: ['--maxWorkers=1'], capture: true });
}

function script(name, ...args) {
  return run(process.execPath, [`scripts/${name}`, ...args]);
}
