// What a package costs before it does anything: the time of its import in a new process, and its packed size. Guard's is
// that of core and the adapter together; what both need of others (clients, drivers) is counted for nobody.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { playRounds } from '../rounds.mjs';

const SCENARIO = 'start';
const EACH_MS = 130;
const PACK_MS = 250;
const exec = promisify(execFile);
const root = join(import.meta.dirname, '..', '..', '..');
const peers = join(root, 'benchmarks', 'peers', 'node_modules');

/** What an application imports anyway. */
const HOSTS = {
  memory: [],
  sqlite: ['better-sqlite3', 'typeorm'],
  postgres: ['pg', 'typeorm'],
  redis: ['ioredis', 'redis'],
  etcd: ['etcd3'],
};
const ADAPTERS = { sqlite: 'typeorm', postgres: 'typeorm', redis: 'redis', etcd: 'etcd' };
/** Peers by backend: the package, and the file that an application imports. */
const PEERS = {
  memory: { 'async-mutex': 'async-mutex/index.mjs', verrou: '@verrou/core/build/index.js' },
  sqlite: { verrou: '@verrou/core/build/index.js' },
  postgres: { verrou: '@verrou/core/build/index.js', 'pg-boss': 'pg-boss/dist/index.js' },
  redis: {
    redlock: 'redlock/redlock.js',
    'sesamecare-redlock': '@sesamecare-oss/redlock/build/index.js',
    'redlock-universal': 'redlock-universal/dist/index.js',
    'redis-semaphore': 'redis-semaphore/lib/index.js',
    verrou: '@verrou/core/build/index.js',
    'simple-redis-mutex': 'simple-redis-mutex/dist/index.js',
    bullmq: 'bullmq/dist/cjs/index.js',
  },
  etcd: {},
};

export const start = {
  fits: () => true,
  expectedMs: ({ bounds, ...view }) =>
    Object.keys(packagesOf(view)).length * (bounds.start.rounds * EACH_MS + PACK_MS),
  play: async (stage) => {
    const packages = packagesOf(stage);
    const samples = await playRounds({
      names: Object.keys(packages),
      rounds: stage.bounds.start.rounds,
      warmUp: false,
      play: async (name) => {
        const sample = { import_ms: await importMs(packages[name].files, HOSTS[stage.backend.name] ?? []) };
        stage.tick(EACH_MS);
        return sample;
      },
    });
    for (const [name, { folders }] of Object.entries(packages)) {
      samples[name][0].packed_kb = await packedKb(folders);
      stage.tick(PACK_MS);
    }
    stage.add(SCENARIO, samples);
  },
};

/** `{ files, folders }` of each contender: what is imported, and what is packed. */
function packagesOf({ backend: { name: backend }, takesPart }) {
  const own = ['core', ADAPTERS[backend]].filter(Boolean).map((name) => join(root, 'packages', name));
  const found = {
    guard: { files: own.map((folder) => join(folder, 'dist', 'esm', 'index.js')), folders: own },
  };
  for (const [name, file] of Object.entries(PEERS[backend] ?? {})) {
    const parts = file.split('/').slice(0, file.startsWith('@') ? 2 : 1);
    found[name] = { files: [join(peers, file)], folders: [join(peers, ...parts)] };
  }
  return Object.fromEntries(Object.entries(found).filter(([name]) => takesPart(name)));
}

/** In a new process, without what Node itself and the hosts need until they run. */
async function importMs(files, hosts) {
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
  let bytes = 0;
  for (const folder of folders) {
    if (!existsSync(folder)) throw new Error(`${folder} is missing`);
    const command = folder.startsWith(peers)
      ? ['tar', ['-czf', '-', '--exclude=node_modules', '-C', folder, '.']]
      : ['npm', ['pack', '--dry-run', '--json', '--ignore-scripts', folder]];
    const { stdout } = await exec(...command, { encoding: 'buffer', maxBuffer: 2 ** 28, cwd: root });
    bytes += folder.startsWith(peers) ? stdout.length : JSON.parse(String(stdout))[0].size;
  }
  return bytes / 1_000;
}
