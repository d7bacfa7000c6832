/**
 * Where locks and runs of the demo can live. One entry is one backend; the ledger is always in the embedded SQLite
 * file, and its fence takes tokens of any lock backend. A server is started for the demo and ended with it.
 */
import { kvRuns, type LockBackend, type RunStore } from '@guard/core';
import { etcdLocks, etcdState } from '@guard/etcd';
import { redisLocks, redisState } from '@guard/redis';
import { fromIoredis } from '@guard/redis/ioredis';
import {
  startEtcd,
  startMariadb,
  startPostgres,
  startRedis,
  type ServerControl,
  type SqlServer,
} from '@guard/testing/servers';
import { ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import { Etcd3 } from 'etcd3';
import { Redis } from 'ioredis';
import { DataSource } from 'typeorm';

/** A backend as one process has it. */
interface Opened {
  locks(): LockBackend;
  runs(): RunStore;
  /** Ends the connections that the demo made for it. */
  end(): void;
}

/** A server that was started for the demo. */
type Served = { readonly url: string } & Pick<ServerControl, 'stop' | 'kill' | 'restart'>;

interface Backend {
  /** Starts the server that it needs. */
  serve?(): Promise<Served>;
  open(ledger: DataSource, url: string): Opened | Promise<Opened>;
}

/** Both in tables of a database server, through a data source of its own. */
function onServer(type: 'postgres' | 'mariadb', start: () => Promise<SqlServer>): Backend {
  return {
    serve: async () => {
      const server = await start();
      const source = await new DataSource({ type, url: server.url }).initialize();
      await ensureSchema(source);
      await source.destroy();
      return server;
    },
    open: async (_, url) => {
      const source = await new DataSource({ type, url }).initialize();
      const [locks, runs] = [typeormLocks(source), typeormRuns(source)];
      return {
        locks: () => locks,
        runs: () => runs,
        end: () => void Promise.all([locks.close(), runs.close()]).finally(() => source.destroy()),
      };
    },
  };
}

const BACKENDS = {
  sqlite: {
    open: (ledger) => ({
      locks: () => typeormLocks(ledger),
      runs: () => typeormRuns(ledger),
      end: () => undefined,
    }),
  },
  redis: {
    serve: () => startRedis(),
    open: (_, url) => {
      const client = new Redis(url);
      // Guard tells of an outage; without a listener the client prints a line for each try to connect.
      client.on('error', () => undefined);
      const connection = fromIoredis(client);
      return {
        locks: () => redisLocks(connection),
        runs: () => kvRuns(redisState(connection)),
        end: () => client.disconnect(),
      };
    },
  },
  etcd: {
    serve: async () => {
      const group = await startEtcd();
      return Object.assign(group, { url: group.urls.join(',') });
    },
    open: (_, url) => {
      const client = new Etcd3({ hosts: url.split(',') });
      const [locks, state] = [etcdLocks(client), etcdState(client)];
      return {
        locks: () => locks,
        runs: () => kvRuns(state),
        end: () => void Promise.all([locks.close(), state.close()]).finally(() => client.close()),
      };
    },
  },
  postgres: onServer('postgres', () => startPostgres()),
  mariadb: onServer('mariadb', () => startMariadb()),
} as const satisfies Record<string, Backend>;

/** A backend that exists. */
export type BackendName = keyof typeof BACKENDS;

/** Which backend does what. */
export interface Backends {
  readonly locks: BackendName;
  readonly runs: BackendName;
}

/** The same, with the addresses of the servers that were started. */
export interface ServedBackends extends Backends {
  readonly addresses: Partial<Record<BackendName, string>>;
}

/** A server that can be taken away for a while, and comes back with what it had. */
export interface Store {
  readonly name: BackendName;
  down(): Promise<void>;
  up(): Promise<void>;
}

/** The names that `--backend`, `--locks` and `--runs` take. */
export const BACKEND_NAMES = Object.keys(BACKENDS) as readonly BackendName[];

/** The backends of these that are servers, each once. */
export function serversOf({ locks, runs }: Backends): readonly BackendName[] {
  return [...new Set([locks, runs])].filter((name) => 'serve' in BACKENDS[name]);
}

/** Starts what the backends need. */
export async function serveBackends(backends: Backends): Promise<{
  readonly served: ServedBackends;
  readonly stores: readonly Store[];
  readonly stop: () => Promise<void>;
}> {
  const addresses: Partial<Record<BackendName, string>> = {};
  const stops: (() => Promise<void>)[] = [];
  const stores: Store[] = [];
  for (const name of serversOf(backends)) {
    const server = await (BACKENDS[name] as Backend).serve!();
    addresses[name] = server.url;
    stops.push(() => server.stop());
    stores.push({ name, down: () => server.kill(), up: () => server.restart({ keepData: true }) });
  }
  const stop = async (): Promise<void> => {
    await Promise.all(stops.map((each) => each()));
  };
  return { served: { ...backends, addresses }, stores, stop };
}

/** Opens both, as `createGuard` takes them; one backend that does both is opened once. */
export async function openBackends(
  { locks, runs, addresses }: ServedBackends,
  ledger: DataSource,
): Promise<{ readonly locks: LockBackend; readonly runs: RunStore; readonly end: () => void }> {
  const open = async (name: BackendName): Promise<Opened> =>
    (BACKENDS[name] as Backend).open(ledger, addresses[name] ?? '');
  const forLocks = await open(locks);
  const forRuns = runs === locks ? forLocks : await open(runs);
  const end = (): void => {
    forLocks.end();
    if (forRuns !== forLocks) forRuns.end();
  };
  return { locks: forLocks.locks(), runs: forRuns.runs(), end };
}
