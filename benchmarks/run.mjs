// `npm run bench`: Guard beside the bare backend and its peers, interleaved in one process. See README.md.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { run } from '../scripts/lib/run.mjs';
import { etcdContenders } from './src/etcd.mjs';
import { memoryContenders } from './src/memory.mjs';
import { postgresContenders } from './src/postgres.mjs';
import { redisContenders } from './src/redis.mjs';
import { sqliteContenders } from './src/sqlite.mjs';
import { sqliteProcesses } from './src/sqlite-processes.mjs';
import { measure } from './src/measure.mjs';
import { machine, print, rowsOf, versions } from './src/report.mjs';

const BACKENDS = {
  memory: memoryContenders,
  sqlite: sqliteContenders,
  postgres: postgresContenders,
  redis: redisContenders,
  etcd: etcdContenders,
};
const SCENARIOS = ['uncontended', 'throughput', 'contention'];

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: SCENARIOS.join(',') },
    backend: { type: 'string', default: Object.keys(BACKENDS).join(',') },
    json: { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
});
const scenarios = chosen('--only', values.only, SCENARIOS);
const backends = chosen('--backend', values.backend, Object.keys(BACKENDS));
const peers = join(import.meta.dirname, 'peers');
if (!existsSync(join(peers, 'node_modules'))) {
  console.log('npm ci in benchmarks/peers');
  if ((await run('npm', ['ci'], { cwd: peers })).code !== 0)
    throw new Error('the peers could not be installed');
}

const rows = [];
for (const backend of backends) {
  const stage = await BACKENDS[backend]();
  try {
    for (const scenario of scenarios) {
      if (scenario === 'contention') {
        rows.push(...((await stage.contention?.(values)) ?? []));
        continue;
      }
      const results = await measure(scenario, backend, stage.contenders, values);
      rows.push(...rowsOf(scenario, backend, results));
      print(scenario, backend, results);
    }
  } finally {
    await stage.close();
  }
}
if (backends.includes('sqlite') && scenarios.includes('throughput'))
  rows.push(...(await sqliteProcesses(values)));
const report = { machine: machine(), versions: versions(), seed: Number(values.seed), rows };
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
process.exit(rows.some(({ metric, value }) => metric === 'violations' && value > 0) ? 1 : 0);

function chosen(option, text, known) {
  const names = text.split(',');
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`${option} has no '${unknown}'; it has ${known.join(', ')}`);
  return names;
}
