// `npm run bench`: from a fresh clone to the figures of benchmarks/run.mjs, with one command.
import { optionsOrEnd } from '../benchmarks/src/options.mjs';
import { makeReady } from './lib/ready.mjs';
import { run } from './lib/run.mjs';
import { PROGRAMS, provideServerPrograms } from './lib/server-programs.mjs';

/** A contender of its own. */
const ETCDCTL = { program: 'etcdctl', package: 'etcd-client' };

optionsOrEnd(process.argv.slice(2));
// What cannot be installed here may come as a container, or be said when a server is to start.
const programs = [...PROGRAMS, ETCDCTL];
const ready = (await makeReady('the benchmark')) && (await provideServerPrograms({ programs }));
process.exitCode = ready ? await bench() : 1;

async function bench() {
  return (await run(process.execPath, ['benchmarks/run.mjs', ...process.argv.slice(2)])).code;
}
