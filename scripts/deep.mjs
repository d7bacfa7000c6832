// `npm run test:deep`: what takes too long for every `npm test`. A thousand seeds of the simulator (`npm test` plays a
// hundred); the mechanisms taken out one by one, each of which the simulator must notice; the contract suites on every
// other topology (Sentinel, a cluster, three nodes of etcd, PgBouncer, SQLite's other journal, a replica), and whole
// programs on servers; the quick soak of schedules, and their hours of outages; the report of the benchmarks in a
// browser; the demo on servers. A stage of `.ci/run`.
import { runJest } from './lib/jest.mjs';

process.env.GUARD_SEEDS ??= '1000';
const FOLDERS = ['mutations', 'topologies', 'soak', 'schedule/hours', 'benchmarks', 'deep'];
const patterns = ['testing/test/simulator', ...FOLDERS.map((name) => `test/${name}/`)];
const { ok, passed, failed } = await runJest({ projects: ['virtual', 'deep'], patterns });
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = ok ? 0 : 1;
