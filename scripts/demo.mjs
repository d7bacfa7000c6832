// `npm run demo`: from a fresh clone to the verdict of examples/settlement-demo, with one command and no server.
import { join } from 'node:path';
import { makeReady } from './lib/ready.mjs';
import { root } from './lib/repo.mjs';
import { run } from './lib/run.mjs';

process.exitCode = (await makeReady('the demo')) ? await demo() : 1;

async function demo() {
  const program = join(root, 'examples', 'settlement-demo', 'dist', 'main.js');
  return (await run(process.execPath, [program, ...process.argv.slice(2)])).code;
}
