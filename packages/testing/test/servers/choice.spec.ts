import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { failureOf, secretsIn, startWorker, until } from '@guard/testing';
import { startEtcd, startMariadb, startPostgres, startRedis, type TestServer } from '@guard/testing/servers';
import { templatesFolder } from '../../src/servers/reap.js';
import { prepareData } from '../../src/servers/template.js';
import { redisCommand } from '../../src/servers/wire.js';
import { descendants, lives } from './support/describe-server.js';
import { Machine } from './support/machine.js';

jest.setTimeout(60_000);

const before = { ...process.env };

afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});

describe('A server from the environment', () => {
  it.each([
    ['GUARD_REDIS_URL', () => startRedis()],
    ['GUARD_ETCD_URLS', async () => (await startEtcd()).nodes[0] as TestServer],
    ['GUARD_POSTGRES_URL', () => startPostgres()],
    ['GUARD_MARIADB_URL', () => startMariadb()],
  ])('is used where %s names it, tells its version, and is left alone', async (variable, start) => {
    await using owned = await start();
    process.env[variable] = owned.url;
    const found = await start();
    expect(found).toMatchObject({ source: 'environment', port: owned.port, version: owned.version });
    for (const act of ['pause', 'resume', 'kill'] as const) {
      await expect(found[act]()).rejects.toMatchObject({ code: 'unavailable' });
    }
    await expect(found.restart({ keepData: true })).rejects.toThrow('was not started by this test');
    await found.stop();
    expect(lives(owned.pid ?? 0)).toBe(true);
  });

  it('is an error where nobody answers, which shows neither user nor password', async () => {
    process.env['GUARD_REDIS_URL'] = 'redis://me:secret@127.0.0.1:1';
    const error = await startRedis().catch((caught: unknown) => caught);
    expect(String(error)).toContain('redis does not answer at 127.0.0.1:1, the address in GUARD_REDIS_URL');
    expect(String(error)).not.toMatch(/secret|me:/);
  });

  it('is an error where the address is none, which does not show it', async () => {
    process.env['GUARD_REDIS_URL'] = 'secret';
    await expect(startRedis()).rejects.toThrow(
      /^\[invalid-argument\] GUARD_REDIS_URL must hold addresses like redis:\/\/host:port$/,
    );
  });

  it.each([
    ['GUARD_POSTGRES_URL', 'postgres://u:s3%zz@127.0.0.1:1/db', 'password', () => startPostgres()],
    ['GUARD_POSTGRES_URL', 'postgres://u:s3cret@127.0.0.1:1/d%', 'database', () => startPostgres()],
    ['GUARD_MARIADB_URL', 'mariadb://%ff:s3cret@127.0.0.1:1/db', 'user', () => startMariadb()],
    ['GUARD_REDIS_URL', 'redis://u:s3%zz@127.0.0.1:1', 'password', () => startRedis()],
  ])('is an error where the login in %s cannot be read, which does not show it', async (...given) => {
    const [variable, address, part, start] = given;
    process.env[variable] = address;
    const error = await failureOf(start());
    expect(error.code).toBe('invalid-argument');
    expect(error.message).toContain(`${variable} holds an address whose ${part} cannot be read`);
    expect(secretsIn(error, ['s3%zz', 's3cret', '%ff', 'd%'])).toEqual([]);
  });

  it('is an error where it speaks TLS, which would be a plain question to it', async () => {
    process.env['GUARD_REDIS_URL'] = 'rediss://me:secret@127.0.0.1:6379';
    await expect(startRedis()).rejects.toThrow(
      /must hold addresses like redis:\/\/host:port; rediss, which is TLS, is not spoken here$/,
    );
  });

  it('is an error where it refuses the login, which says that and no password', async () => {
    await using owned = await startRedis();
    await redisCommand(owned.port, ['CONFIG', 'SET', 'requirepass', 'right']);
    process.env['GUARD_REDIS_URL'] = owned.url;
    const where = `redis refuses the login at 127.0.0.1:${owned.port}, the address in GUARD_REDIS_URL`;
    await expect(startRedis()).rejects.toThrow(`${where}: NOAUTH`);
    process.env['GUARD_REDIS_URL'] = `redis://:guessed@127.0.0.1:${owned.port}`;
    const error = await failureOf(startRedis());
    expect(String(error)).toContain(`${where}: WRONGPASS`);
    expect(secretsIn(error, ['guessed'])).toEqual([]);
    process.env['GUARD_REDIS_URL'] = `redis://:right@127.0.0.1:${owned.port}`;
    expect(await startRedis()).toMatchObject({ source: 'environment' });
  });

  it('is an error where another protocol answers', async () => {
    const web = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1');
    await once(web, 'listening');
    process.env['GUARD_REDIS_URL'] = `redis://127.0.0.1:${(web.address() as AddressInfo).port}`;
    await expect(startRedis()).rejects.toThrow(
      /^\[unavailable\] redis does not answer .*: this is not Redis$/,
    );
    web.close();
  });

  it('is an error where there are fewer than asked for', async () => {
    process.env['GUARD_ETCD_CLUSTER_URLS'] = 'http://127.0.0.1:1';
    await expect(startEtcd({ nodes: 3 })).rejects.toThrow(
      '[invalid-argument] GUARD_ETCD_CLUSTER_URLS holds 1 addresses, needed: 3',
    );
  });
});

describe('An installed program', () => {
  it('is a file that can be executed, not a folder of that name', async () => {
    const machine = new Machine();
    try {
      machine.installFolder('redis-server');
      process.env['PATH'] = machine.env.PATH;
      await using redis = await startRedis();
      expect(redis.source).toBe('program');
    } finally {
      machine.remove();
    }
  });

  it('is an error at once where its arguments make it ask for a password', async () => {
    await expect(startRedis({ args: ['--requirepass', 'x'] })).rejects.toThrow(
      /it asks for a password \(NOAUTH\), which is not supported: leave requirepass out of args/,
    );
  });
});

describe('A server that nothing can start', () => {
  it('is an error that says what would help, and nothing that would not', async () => {
    // No container engine is at this address, and none of its own ways to look for one is left to testcontainers.
    Object.assign(process.env, { GUARD_TEST_SERVERS: 'docker', DOCKER_HOST: 'tcp://127.0.0.1:1' });
    process.env['GUARD_POSTGRES_URL'] = 'postgres://127.0.0.1:1';
    process.env['GUARD_POSTGRES_IMAGE'] = 'guard.invalid/there-is-none';
    const error = String(await startPostgres().catch((caught: unknown) => caught));
    expect(error).toMatch(/^GuardError: \[unavailable\] /);
    if (error.includes('no container of the image')) {
      // An engine was found all the same.
      expect(error).toContain('GUARD_POSTGRES_IMAGE names another image');
    } else {
      expect(error).toContain(
        'GUARD_TEST_SERVERS=docker asks for a container, and no container engine answers',
      );
      expect(error).toContain(
        'Unset, it lets tests use the address in GUARD_POSTGRES_URL, the installed postgres',
      );
      // It would not be looked at.
      expect(error).not.toContain('apt-get');
    }
  });

  it('is an error where GUARD_TEST_SERVERS is neither docker nor unset', async () => {
    process.env['GUARD_TEST_SERVERS'] = 'podman';
    await expect(startRedis()).rejects.toThrow('GUARD_TEST_SERVERS may be "docker" or unset, got "podman"');
  });

  it.each([
    ['of a program that makes its data', ['guard-no-such-program'], 'guard-no-such-program', 'postgresql'],
    ['of the program that copies it', [], 'cp', 'coreutils'],
  ])('names the package %s, where that is not to be found', async (_what, programs, missing, wanted) => {
    const machine = new Machine();
    process.env['PATH'] = '';
    const prepare = () => programs.map((program) => ({ program, args: [] }));
    const recipe = { kind: 'postgres', program: 'x', packages: ['postgresql'], prepare } as never;
    try {
      const error = await failureOf(prepareData(recipe, 'none', machine.tmp, {}));
      expect(error.code).toBe('unavailable');
      expect(error.message).toContain(
        `${missing} is not installed, or not in PATH. On Debian: apt-get install ${wanted}`,
      );
    } finally {
      machine.remove();
      const made = readdirSync(templatesFolder()).filter((name) => name.startsWith('postgres-none-'));
      for (const name of made) rmSync(join(templatesFolder(), name), { recursive: true });
    }
  });

  it('names the packages that npm test installs', () => {
    const script = readFileSync(join(__dirname, '../../../../scripts/lib/server-programs.mjs'), 'utf8');
    const installed = [...script.matchAll(/package: '([^']+)'/g)].map((match) => match[1]).sort();
    const folder = join(__dirname, '../../src/servers');
    const named = readdirSync(folder)
      .map((file) => readFileSync(join(folder, file), 'utf8'))
      .flatMap((source) => [...source.matchAll(/packages: \[([^\]]+)\]/g)])
      .flatMap((match) => match[1]?.split(',').map((name) => name.trim().replaceAll("'", '')) ?? [])
      .sort();
    // It is no server: it makes the certificates of tests.
    expect([...named, 'openssl'].sort()).toEqual(installed);
  });
});

describe('A server whose test process dies', () => {
  it('ends with it, its children and its folder too', async () => {
    const worker = startWorker(join(__dirname, 'workers', 'serve.ts'));
    const pid = await worker.next<number>();
    const family = [pid, ...descendants(pid)];
    expect(family.length).toBeGreaterThan(2);
    const folder = foldersOf(pid);
    expect(folder).toHaveLength(1);
    await worker.kill();
    await until('the server is gone', async () => family.every((each) => !lives(each)));
    await until('its folder is gone', async () => !existsSync(folder[0] ?? ''));
  });
});

/** The temporary folders that a process works in. */
function foldersOf(pid: number): string[] {
  const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  return args.filter((arg) => arg.startsWith(join(tmpdir(), 'guard-')) && !arg.endsWith('/data'));
}
