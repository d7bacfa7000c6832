// `npm run cases -- [--backend NAME,…]`: the contract suites with every case as it is written, in its full
// profile. `npm test` runs the same cases scaled down.
import { runJest } from './lib/jest.mjs';

/** The backends that have a contract, and where it stands. */
const CONTRACTS = {
  memory: { project: 'virtual', file: 'packages/core/test/contract.spec.ts' },
  sqlite: { project: 'unit', file: 'packages/typeorm/test/contract.spec.ts' },
  redis: { project: 'servers', file: 'packages/redis/test/contract.spec.ts' },
  'redis-cluster': { project: 'deep', file: 'packages/redis/test/topologies/cluster.spec.ts' },
  'redis-sentinel': { project: 'deep', file: 'packages/redis/test/topologies/sentinel.spec.ts' },
  etcd: {
    project: 'servers',
    file: ['packages/etcd/test/contract.spec.ts', 'packages/etcd/test/guard-contract.spec.ts'],
  },
  postgres: { project: 'servers', file: 'packages/typeorm/test/servers/postgres-contract.spec.ts' },
  mariadb: { project: 'servers', file: 'packages/typeorm/test/servers/mariadb-contract.spec.ts' },
};

const [flag, wanted, ...rest] = process.argv.slice(2);
const names = flag === undefined ? Object.keys(CONTRACTS) : (wanted ?? '').split(',');
const known = names.every((name) => Object.hasOwn(CONTRACTS, name));
if ((flag !== undefined && flag !== '--backend') || rest.length > 0 || !known) {
  console.error(`usage: npm run cases -- [--backend ${Object.keys(CONTRACTS).join(',')}]`);
  process.exitCode = 2;
} else {
  process.env.GUARD_PROFILE = 'full';
  for (const { project, file } of names.map((name) => CONTRACTS[name])) {
    const { ok } = await runJest({ projects: [project], paths: [file].flat() });
    if (!ok) process.exitCode = 1;
  }
}
