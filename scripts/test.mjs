// `npm test`: everything between a fresh clone and a verdict. Uses nothing but Node until dependencies are installed.
import { fetchPackages, provideNativeModules, whyInstall } from './lib/install.mjs';
import { runJestProjects } from './lib/jest.mjs';
import { run, runNodeTool } from './lib/run.mjs';
import { provideServerPrograms } from './lib/server-programs.mjs';
import { Stages } from './lib/stages.mjs';

const stages = new Stages();
const totals = { passed: 0, failed: 0, skipped: 0 };

if (await dependenciesAreThere()) {
  // None of these needs another, and the longest, the native build, keeps one core busy.
  await Promise.all([
    provideMachineCode(),
    stages.run('build', async () => (await run(process.execPath, ['scripts/build.mjs'])).code === 0),
    checkSources(),
  ]);
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

/** One after the other: both may install Debian's packages. */
async function provideMachineCode() {
  await stages.run('server programs', provideServerPrograms);
  await stages.run('native modules', provideNativeModules);
}

async function checkSources() {
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
