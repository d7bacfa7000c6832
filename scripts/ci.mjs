// What .ci/run runs: the one test command of the README, then every other check, each as a stage with its time.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/repo.mjs';
import { run } from './lib/run.mjs';
import { Stages } from './lib/stages.mjs';

/** How a script says that this machine cannot do what it is for. */
const CANNOT_BE_DONE_HERE = 75;

const stages = new Stages();
const script = (name, ...args) =>
  stages.run(name, async () => {
    const { code } = await run('npm', ['run', '--silent', name, ...args]);
    return code === CANNOT_BE_DONE_HERE ? { skipped: 'nothing was shown; its output says why' } : code === 0;
  });

await script('test');
await script('lint');
await script('format:check');
await script('knip');
await script('depcruise');
await script('check:packages');
await script('api:check');
await script('test:deep');
await script('test:nodes');
await script('test:consumers');
await script('test:smoke');
if (existsSync(join(root, 'scripts', 'demo.mjs'))) await script('demo', '--', '--json');

stages.print();
process.exitCode = stages.failed ? 1 : 0;
