/**
 * [S6] What a guard says never holds the password of the client that it was handed: neither after the server refused it,
 * nor while no server answers. The client libraries do put it into their own errors (ioredis: the refused AUTH with its
 * arguments).
 */
import { inspect } from 'node:util';
import { createGuard, kvRuns } from '@guard/core';
import { everythingSaid, secretsIn, startTcpProxy, type TcpAddress, type TcpProxy } from '@guard/testing';
import { startRedis } from '@guard/testing/servers';
import { Redis } from 'ioredis';
import { Redis as Redis6 } from 'ioredis6';
import { createClient } from 'redis';
import { createClient as createClient6 } from 'redis6';
import { redisLocks, redisState, type RedisConnection } from '../src/index.js';
import { fromIoredis } from '../src/ioredis.js';
import { fromNodeRedis } from '../src/node-redis.js';

/** With what an address has to encode. */
const PASSWORD = 'geheim/p@ss';
const WRONG = 'geheim, but wrong';
const SECRETS = [PASSWORD, WRONG, 'geheim'];

interface Client {
  readonly connection: RedisConnection;
  /** What the library itself told the application. */
  readonly own: unknown[];
  end(): void;
}

interface Login {
  readonly port: number;
  readonly username: string;
  readonly password: string;
}

const address = ({ port, username, password }: Login): string =>
  `redis://${username}:${encodeURIComponent(password)}@127.0.0.1:${port}`;

const CLIENTS: Readonly<Record<string, (login: Login) => Promise<Client>>> = {
  'ioredis 5, by an address': async (login) => viaIoredis(new Redis(address(login))),
  'ioredis 6, by options': async (login) => viaIoredis(new Redis6(login)),
  'node-redis 5, by an address': async (login) => viaNodeRedis(createClient({ url: address(login) })),
  'node-redis 6, by options': async ({ port, ...login }) =>
    viaNodeRedis(createClient6({ socket: { port, host: '127.0.0.1' }, ...login })),
};

function viaIoredis(client: Redis | Redis6): Client {
  const own: unknown[] = [];
  client.on('error', (error: unknown) => void own.push(error));
  return { connection: fromIoredis(client), own, end: () => client.disconnect() };
}

async function viaNodeRedis(
  client: ReturnType<typeof createClient> | ReturnType<typeof createClient6>,
): Promise<Client> {
  const own: unknown[] = [];
  client.on('error', (error: unknown) => void own.push(error));
  // One that the server refuses tries again for ever.
  await Promise.race([client.connect(), new Promise((resolve) => client.once('error', resolve))]);
  return { connection: fromNodeRedis(client), own, end: () => client.destroy() };
}

interface Trouble {
  readonly password: string;
  /** What happens once the client is connected. */
  harm?(admin: Redis, username: string, proxy: TcpProxy): Promise<unknown>;
  /** Something that a guard says then. */
  readonly says: string;
}

const TROUBLES: Readonly<Record<string, Trouble>> = {
  'while all is well': { password: PASSWORD, says: 'lock-granted' },
  'after the password was revoked': {
    password: PASSWORD,
    harm: async (admin, username) => {
      await admin.acl('SETUSER', username, 'resetpass', '>another');
      await admin.client('KILL', 'USER', username);
    },
    says: '[unavailable]',
  },
  'while nothing listens': {
    password: PASSWORD,
    harm: (_admin, _username, proxy) => proxy.close(),
    says: '[unavailable]',
  },
  'with a password that was never valid': { password: WRONG, says: '[unavailable]' },
};

const cases = Object.entries(CLIENTS).flatMap(([name, connect]) =>
  Object.entries(TROUBLES).map(([when, trouble]) => ({ name, when, connect, trouble })),
);
type Case = (typeof cases)[number];

const said = new Map<Case, { readonly guard: readonly unknown[]; readonly library: readonly unknown[] }>();
const printed: unknown[] = [];
const warned = (warning: Error): void => void printed.push(warning);

// All at once: each waits for what a guard does before it gives up.
beforeAll(async () => {
  process.on('warning', warned);
  for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const) {
    jest.spyOn(console, method).mockImplementation((...args: unknown[]) => void printed.push(args));
  }
  const server = await startRedis({ appendOnly: false });
  const admin = new Redis(server.url);
  try {
    await Promise.all(cases.map((one, index) => play(one, `guarded${index}`, admin, server)));
  } finally {
    admin.disconnect();
    await server.stop();
    jest.restoreAllMocks();
    process.off('warning', warned);
  }
}, 120_000);

async function play(one: Case, username: string, admin: Redis, target: TcpAddress): Promise<void> {
  await admin.acl('SETUSER', username, 'on', `>${PASSWORD}`, '~*', '&*', '+@all');
  const proxy = await startTcpProxy({ target });
  const { connect, trouble } = one;
  const client = await connect({ port: proxy.port, username, password: trouble.password });
  try {
    if (trouble.harm !== undefined) await client.connection.scan('warm/*');
    await trouble.harm?.(admin, username, proxy);
    const state = redisState(client.connection);
    const guard = createGuard({
      locks: redisLocks(client.connection),
      state,
      runs: kvRuns(state),
      namespace: username,
    });
    said.set(one, { guard: await everythingSaid(guard), library: client.own });
  } finally {
    client.end();
    await proxy.close();
    await admin.acl('DELUSER', username);
  }
}

describe('[S6] no secret of the client is told', () => {
  it.each(cases)('over $name, $when', (one) => {
    const { guard, library } = said.get(one)!;
    expect(inspect(guard, { depth: 3 })).toContain(one.trouble.says);
    expect(secretsIn(guard, SECRETS)).toEqual([]);
    if (one.name.startsWith('ioredis') && one.trouble.password === WRONG) {
      // This is no idle test: the library's own errors do hold it.
      expect(secretsIn(library, SECRETS)).not.toEqual([]);
    }
  });

  it('nor printed', () => expect(secretsIn(printed, SECRETS)).toEqual([]));
});
