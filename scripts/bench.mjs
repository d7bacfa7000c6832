// `npm run bench`: from a fresh clone to the figures of benchmarks/run.mjs, with one command.
import { makeReady } from './lib/ready.mjs';
import { run } from './lib/run.mjs';

process.exitCode = (await makeReady('the benchmark')) ? await bench() : 1;

async function bench() {
  return (await run(process.execPath, ['benchmarks/run.mjs', ...process.argv.slice(2)])).code;
}
