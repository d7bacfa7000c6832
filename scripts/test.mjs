// `npm test`: everything between a fresh clone and a verdict. Uses nothing but Node until dependencies are installed.
import { checkNativeModule, install, whyInstall } from './lib/install.mjs';
import { runJestProjects } from './lib/jest.mjs';
import { run, runNodeTool } from './lib/run.mjs';
import { provideServerPrograms } from './lib/server-programs.mjs';
import { Stages } from './lib/stages.mjs';

const stages = new Stages();
const totals = { passed: 0, failed: 0, skipped: 0 };

if (await dependenciesAreThere()) {
  // None needs another: each is one core's work.
  await Promise.all([
    stages.run('build', async () => (await run(process.execPath, ['scripts/build.mjs'])).code === 0),
    stages.run('typecheck', async () => {
      return (await runNodeTool('typescript/bin/tsc', ['-p', 'tsconfig.lint.json'])).code === 0;
    }),
    stages.run('server programs', provideServerPrograms),
  ]);
  await stages.run('tests: structure', () => test('structure'));
  await stages.run('tests: unit, examples, servers', () => test('unit', 'examples', 'servers'));
}

stages.print();
console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = stages.failed ? 1 : 0;

async function dependenciesAreThere() {
  return stages.run('dependencies', async () => {
    const reason = whyInstall();
    console.log(reason ?? 'node_modules is what package-lock.json says');
    if (reason && !(await install())) return false;
    return checkNativeModule();
  });
}

async function test(...projects) {
  const { ok, passed, failed, skipped } = await runJestProjects(...projects);
  totals.passed += passed;
  totals.failed += failed;
  totals.skipped += skipped;
  return ok;
}
