// `npm run demo`: from a fresh clone to the verdict of examples/settlement-demo, with one command and no server.
import { join } from 'node:path';
import { checkNativeModule, install, whyInstall } from './lib/install.mjs';
import { root } from './lib/repo.mjs';
import { run } from './lib/run.mjs';

process.exitCode = (await isReady()) ? await demo() : 1;

async function isReady() {
  const reason = whyInstall();
  if (reason) {
    console.log(`${reason}: installing what the demo needs`);
    if (!(await install())) return false;
  }
  if (!(await checkNativeModule())) return false;
  console.log('building (the first time takes half a minute)');
  return (await run(process.execPath, ['scripts/build.mjs'])).code === 0;
}

async function demo() {
  const program = join(root, 'examples', 'settlement-demo', 'dist', 'main.js');
  return (await run(process.execPath, [program, ...process.argv.slice(2)])).code;
}
