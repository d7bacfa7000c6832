// What .ci/run runs: the one test command of the README, then every other check, each as a stage with its time.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/repo.mjs';
import { run } from './lib/run.mjs';
import { Stages } from './lib/stages.mjs';

const stages = new Stages();
const script = (name, ...args) =>
  stages.run(name, async () => (await run('npm', ['run', '--silent', name, ...args])).code === 0);

await script('test');
await script('lint');
await script('format:check');
await script('knip');
await script('depcruise');
await script('check:packages');
await script('api:check');
if (existsSync(join(root, 'scripts', 'demo.mjs'))) await script('demo', '--', '--json');

stages.print();
process.exitCode = stages.failed ? 1 : 0;
