// `npm run soak:schedules -- [--quick] [--store sqlite,postgres] [--scene even,troubled,down] [--seed N] [--json]`: real
// processes with wrong clocks, which are killed and stopped, and everything down for a while; from a fresh clone to the
// verdict. Ends with 0 when every occurrence did what was promised, with 1 otherwise.
import { join } from 'node:path';
import { makeReady } from './lib/ready.mjs';
import { root } from './lib/repo.mjs';
import { run } from './lib/run.mjs';

process.exitCode = (await makeReady('the soak')) ? await soak() : 1;

async function soak() {
  const program = join(root, 'packages', 'typeorm', 'test', 'soak', 'main.mjs');
  return (await run(process.execPath, [program, ...process.argv.slice(2)])).code;
}
