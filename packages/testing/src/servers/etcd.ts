/** etcd: one node, or three that elect a leader. */
import { GuardError } from '@guard/core';
import { checkGiven, flag, group, oneOf, text, texts } from './arguments.js';
import { addressesIn, type AddressForm } from './environment.js';
import { freePort, LOOPBACK } from './ports.js';
import type { Recipe } from './recipe.js';
import { controlAll, startTogether, type ServerGroup, type TestServer } from './server.js';
import { externalServer, isPortTaken, START_TRIES, startServer } from './start.js';
import { eventually } from './until-ready.js';
import { answers, etcdRequest } from './wire.js';

const ETCD_ADDRESS: AddressForm = { schemes: ['http', 'https'], defaultPort: 2379 };
const CHECKS = {
  nodes: oneOf(1, 3),
  onDisk: flag,
  tls: group({ certFile: text, keyFile: text, clientCaFile: text }, ['certFile', 'keyFile']),
  args: texts,
};

/** How many nodes. */
export interface EtcdOptions {
  /** Default 1. */
  readonly nodes?: 1 | 3;
  /**
   * `false`: its data stands in memory where the machine has a file system for that, so nothing waits for a disk. It
   * outlives the server's process all the same. Default `true`.
   */
  readonly onDisk?: boolean;
  /** Clients speak TLS with it. Programs only: a container does not see these files. */
  readonly tls?: EtcdTls;
  /** More arguments of `etcd`, after Guard's own. */
  readonly args?: readonly string[];
}

/** Files in PEM. */
export interface EtcdTls {
  readonly certFile: string;
  readonly keyFile: string;
  /** Clients have to show a certificate of this authority. Default: they need none. */
  readonly clientCaFile?: string;
}

/** One service; a client takes the addresses of all its nodes. */
export interface EtcdGroup extends ServerGroup {
  /** Addresses for clients. */
  readonly urls: readonly string[];
  /** The node that leads now, as a node that answers says. */
  leader(): Promise<TestServer>;
}

/** etcd: from `GUARD_ETCD_URLS` (one node) or `GUARD_ETCD_CLUSTER_URLS` (three), or started. */
export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdGroup> {
  checkGiven('startEtcd options', options, CHECKS);
  const count = options.nodes ?? 1;
  const variable = count === 1 ? 'GUARD_ETCD_URLS' : 'GUARD_ETCD_CLUSTER_URLS';
  const urls = addressesIn(variable, ETCD_ADDRESS, count);
  const nodes =
    urls === undefined
      ? await startNodes(count, variable, options)
      : await startTogether(urls.map((url) => externalEtcd(variable, url)));
  return asGroup(nodes);
}

function asGroup(nodes: readonly TestServer[]): EtcdGroup {
  const [first] = nodes;
  if (first === undefined) throw new GuardError('invalid-argument', 'etcd needs at least one node');
  const { kind, version, source } = first;
  return {
    ...{ kind, version, source, nodes, urls: nodes.map(({ url }) => url) },
    ...controlAll(nodes),
    leader: () => eventually('a leader of etcd', () => findLeader(nodes)),
  };
}

function externalEtcd(variable: string, url: URL): Promise<TestServer> {
  return externalServer('etcd', variable, url, async () => {
    const { etcdserver } = await etcdRequest(url.href, '/version');
    return typeof etcdserver === 'string' ? etcdserver : 'unknown';
  });
}

/** The ports among the nodes are part of what each is told of the others: where one is taken, all start anew. */
async function startNodes(count: number, variable: string, options: EtcdOptions): Promise<TestServer[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryNodes(count, variable, options);
    } catch (error) {
      if (attempt === START_TRIES || !isPortTaken(error)) throw error;
    }
  }
}

/** All nodes at once: the first is ready only when a majority is there. */
async function tryNodes(count: number, variable: string, options: EtcdOptions): Promise<TestServer[]> {
  const peers = await Promise.all(Array.from({ length: count }, () => freePort()));
  const members = peers.map((port, index) => `node${index}=http://${LOOPBACK}:${port}`).join(',');
  return startTogether(
    peers.map((peerPort, index) =>
      startServer({
        variable,
        recipe: async () => {
          const metricsPort = options.tls === undefined ? undefined : await freePort();
          return etcdRecipe(await freePort(), {
            name: `node${index}`,
            peerPort,
            metricsPort,
            members,
            options,
          });
        },
        finish: (server) =>
          Object.assign(server, { url: `${schemeOf(options)}://${server.host}:${server.port}` }),
      }),
    ),
  );
}

interface Member {
  readonly name: string;
  readonly peerPort: number;
  /** Where one that speaks TLS is asked whether it serves. */
  readonly metricsPort: number | undefined;
  readonly members: string;
  readonly options: EtcdOptions;
}

function etcdRecipe(port: number, { name, peerPort, metricsPort, members, options }: Member): Recipe {
  const { onDisk = true, tls, args = [] } = options;
  const client = `${schemeOf(options)}://${LOOPBACK}:${port}`;
  const asked = metricsPort === undefined ? client : `http://${LOOPBACK}:${metricsPort}`;
  const peer = `http://${LOOPBACK}:${peerPort}`;
  return {
    kind: 'etcd',
    port,
    program: 'etcd',
    packages: ['etcd-server'],
    args: (folder) => [
      ...['--name', name, '--data-dir', `${folder}/${name}`],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--initial-cluster', members, '--initial-cluster-state', 'new'],
      ...['--logger', 'zap', '--log-level', 'warn'],
      ...(tls === undefined ? [] : ['--listen-metrics-urls', asked, ...tlsArgs(tls)]),
      ...args,
    ],
    data: [name],
    inMemory: !onDisk,
    // It acknowledges nothing that is not on its disk. Asked to end, it would look for a new leader first.
    stopSignal: 'SIGKILL',
    image: { variable: 'GUARD_ETCD_IMAGE', name: 'quay.io/coreos/etcd:v3.5.21' },
    isReady: () =>
      answers(async () => {
        const { health } = await etcdRequest(asked, '/health');
        if (health !== 'true') throw new Error('no leader yet');
      }),
  };
}

function schemeOf({ tls }: EtcdOptions): 'http' | 'https' {
  return tls === undefined ? 'http' : 'https';
}

function tlsArgs({ certFile, keyFile, clientCaFile }: EtcdTls): readonly string[] {
  const clients = clientCaFile === undefined ? [] : ['--client-cert-auth', '--trusted-ca-file', clientCaFile];
  return ['--cert-file', certFile, '--key-file', keyFile, ...clients];
}

async function findLeader(nodes: readonly TestServer[]): Promise<TestServer | undefined> {
  for (const node of nodes) {
    const status = (await etcdRequest(node.url, '/v3/maintenance/status', {}).catch((): object => ({}))) as {
      header?: { member_id?: string };
      leader?: string;
    };
    if (status.leader !== undefined && status.leader === status.header?.member_id) return node;
  }
  return undefined;
}
