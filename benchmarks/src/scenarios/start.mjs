// What a package costs before it does anything: the time of its import in a new process, and its packed size. Guard's is
// that of core and the adapter together; what both need of others (clients, drivers) is counted for nobody.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { playRounds } from '../rounds.mjs';

const SCENARIO = 'start';
/** A new process until it has imported its hosts, and the package. */
const EACH_MS = 140;
const HOST_MS = { typeorm: 350, ioredis: 250, pg: 60 };
/** All are packed at once. */
const PACK_MS = 1_500;
const exec = promisify(execFile);
const root = join(import.meta.dirname, '..', '..', '..');
const peers = join(root, 'benchmarks', 'peers', 'node_modules');

const VERROU = { file: '@verrou/core/build/index.js' };
/** What Guard has beside core, and `hosts`: what of the application's own it imports. */
const ADAPTERS = {
  memory: {},
  sqlite: { adapter: 'typeorm', hosts: ['typeorm'] },
  mariadb: { adapter: 'typeorm', hosts: ['typeorm'] },
  postgres: { adapter: 'typeorm', hosts: ['typeorm'] },
  redis: { adapter: 'redis' },
  etcd: { adapter: 'etcd' },
};
/** Peers by backend: the file that an application imports. */
const PEERS = {
  memory: { 'async-mutex': { file: 'async-mutex/index.mjs' }, verrou: VERROU },
  sqlite: { verrou: VERROU },
  mariadb: { verrou: VERROU },
  postgres: { verrou: VERROU, 'pg-boss': { file: 'pg-boss/dist/index.js', hosts: ['pg'] } },
  redis: {
    redlock: { file: 'redlock/redlock.js' },
    'sesamecare-redlock': { file: '@sesamecare-oss/redlock/build/index.js' },
    'redlock-universal': { file: 'redlock-universal/dist/index.js' },
    'redis-semaphore': { file: 'redis-semaphore/lib/index.js' },
    verrou: VERROU,
    'simple-redis-mutex': { file: 'simple-redis-mutex/dist/index.js' },
    bullmq: { file: 'bullmq/dist/cjs/index.js', hosts: ['ioredis'] },
  },
  etcd: {},
};

export const start = {
  fits: (view) => Object.keys(packagesOf(view)).length > 0,
  expectedMs: (view) =>
    Object.values(packagesOf(view)).reduce(
      (sum, each) => sum + view.bounds.start.rounds * eachMs(each),
      PACK_MS,
    ),
  play: async (stage) => {
    const packages = packagesOf(stage);
    const samples = await playRounds({
      names: Object.keys(packages),
      rounds: stage.bounds.start.rounds,
      warmUp: false,
      play: async (name) => {
        const sample = { import_ms: await importMs(packages[name]) };
        stage.tick(eachMs(packages[name]));
        return sample;
      },
    });
    await Promise.all(
      Object.entries(packages).map(async ([name, { folders }]) => {
        samples[name][0].packed_kb = await packedKb(folders);
      }),
    );
    stage.tick(PACK_MS);
    stage.add(SCENARIO, samples);
  },
};

function eachMs({ hosts }) {
  return EACH_MS + hosts.reduce((sum, host) => sum + HOST_MS[host], 0);
}

/** `{ files, folders, hosts }` of each contender: what is imported, what is packed, and what is imported before. */
function packagesOf({ backend: { name: backend }, contenders, bounds, takesPart }) {
  const { adapter, hosts = [] } = ADAPTERS[backend];
  const own = ['core', adapter].filter(Boolean).map((name) => join(root, 'packages', name));
  const found = {
    guard: { files: own.map((folder) => join(folder, 'dist', 'esm', 'index.js')), folders: own, hosts },
  };
  for (const [name, peer] of Object.entries(PEERS[backend])) {
    const parts = peer.file.split('/').slice(0, peer.file.startsWith('@') ? 2 : 1);
    const [file, folder] = [join(peers, peer.file), join(peers, ...parts)];
    found[name] = { files: [file], folders: [folder], hosts: peer.hosts ?? [] };
  }
  const isLeftOut = (name) =>
    bounds.quick && !contenders[name]?.asked && contenders[name]?.slow?.includes(SCENARIO);
  return Object.fromEntries(Object.entries(found).filter(([name]) => takesPart(name) && !isLeftOut(name)));
}

/** In a new process, without what Node itself and the hosts need until they run. */
async function importMs({ files, hosts }) {
  const program = `for (const host of ${JSON.stringify(hosts)}) await import(host);
    const from = performance.now();
    for (const file of ${JSON.stringify(files)}) await import(file);
    console.log(performance.now() - from); process.exit(0);`;
  const { stdout } = await exec(process.execPath, ['--input-type=module', '-e', program], {
    cwd: join(root, 'benchmarks'),
  });
  return Number(stdout);
}

/** As npm would pack it; what is installed of a peer is what was packed. */
async function packedKb(folders) {
  const missing = folders.find((folder) => !existsSync(folder));
  if (missing !== undefined) throw new Error(`${missing} is missing`);
  const installed = folders[0].startsWith(peers);
  const command = installed
    ? ['tar', ['-czf', '-', '--exclude=node_modules', '-C', folders[0], '.']]
    : ['npm', ['pack', '--dry-run', '--json', '--ignore-scripts', ...folders]];
  const { stdout } = await exec(...command, { encoding: 'buffer', maxBuffer: 2 ** 28, cwd: root });
  const bytes = installed
    ? stdout.length
    : JSON.parse(String(stdout)).reduce((sum, { size }) => sum + size, 0);
  return bytes / 1_000;
}
