// `npm test`: everything between a fresh clone and a verdict. Uses nothing but Node until dependencies are installed.
import { fetchPackages, provideNativeModules, whyInstall } from './lib/install.mjs';
import { runJestProjects } from './lib/jest.mjs';
import { run, runNodeTool } from './lib/run.mjs';
import { provideServerPrograms } from './lib/server-programs.mjs';
import { Stages } from './lib/stages.mjs';

const stages = new Stages();
const totals = { passed: 0, failed: 0, skipped: 0 };

// The programs of Debian come while npm brings packages: both wait for the network.
const [there] = await Promise.all([
  dependenciesAreThere(),
  stages.run('server programs', provideServerPrograms),
]);
if (there) {
  // The native build keeps one core busy as long as everything else here does another.
  await Promise.all([stages.run('native modules', provideNativeModules), buildAndCheck()]);
  await stages.run('tests: unit, examples, servers', () => test('unit', 'examples', 'servers'));
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

/** One after the other: each of them is as fast as its core. */
async function buildAndCheck() {
  await stages.run('build', async () => (await run(process.execPath, ['scripts/build.mjs'])).code === 0);
  await stages.run('typecheck', async () => {
    return (await runNodeTool('typescript/bin/tsc', ['-p', 'tsconfig.lint.json'])).code === 0;
  });
  await stages.run('tests: structure', () => test('structure'));
}

async function test(...projects) {
  const { ok, passed, failed, skipped } = await runJestProjects(...projects);
  totals.passed += passed;
  totals.failed += failed;
  totals.skipped += skipped;
  return ok;
}
