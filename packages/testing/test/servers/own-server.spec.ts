/** That a server is the one which was started, that it is controlled by one hand, and that nothing of it stays. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { failureOf, startWorker, until, type WorkerProcess } from '@guard/testing';
import { startIndependentRedis, startRedis } from '@guard/testing/servers';
import { findProgram } from '../../src/servers/find-program.js';
import { redisCommand } from '../../src/servers/wire.js';
import { lives } from './support/describe-server.js';
import { Machine } from './support/machine.js';
import type { Act } from './workers/act.js';

jest.setTimeout(60_000);

const REAL = findProgram('redis-server') ?? 'redis-server';
const path = process.env['PATH'];
let machine: Machine;

beforeEach(() => {
  machine = new Machine();
});

afterEach(() => {
  process.env['PATH'] = path;
  machine.remove();
});

function worker(act: Act): WorkerProcess<boolean> {
  return startWorker<boolean>(join(__dirname, 'workers', 'act.ts'), { input: act, env: machine.env });
}

/** What stands in the temporary folder of the machine, but for what all tests of a user share. */
function leftIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => !name.startsWith('guard-workers-'));
}

/** The records of the tests that run on a machine. */
function recorded(machine: Machine): string[] {
  const folder = join(machine.known('guard-servers'), 'records');
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((test) => {
    const names = readdirSync(join(folder, test)).filter((name) => !name.endsWith('.new'));
    return names.map((name) => readFileSync(join(folder, test, name), 'utf8'));
  });
}

describe('A server', () => {
  it('is never somebody else’s who took the port first: another port is tried', async () => {
    machine.install(
      'redis-server',
      `[ "$1" = --version ] && exec ${REAL} --version
       if mkdir "$HERE/once" 2>/dev/null; then
         echo "$2" > "$HERE/port"
         ${REAL} --port "$2" --bind 127.0.0.1 --save '' --daemonize yes --dir "$HERE" --pidfile "$HERE/pid"
         until redis-cli -p "$2" ping; do sleep 0.02; done
       fi
       exec ${REAL} "$@"`,
    );
    process.env['PATH'] = machine.env.PATH;
    const redis = await startRedis();
    try {
      const taken = Number(readFileSync(join(machine.folder, 'port'), 'utf8'));
      expect(redis.port).not.toBe(taken);
      const info = String(await redisCommand(redis.port, ['INFO', 'server']));
      expect(/process_id:(\d+)/.exec(info)?.[1]).toBe(String(redis.pid));
      expect(await redisCommand(taken, ['PING'])).toBe('PONG');
    } finally {
      process.kill(Number(readFileSync(join(machine.folder, 'pid'), 'utf8')), 'SIGKILL');
      await redis.stop();
    }
  });

  it('does what it is told in turn: two restarts at once leave one process, and stop ends it', async () => {
    const redis = await startRedis();
    await Promise.all([redis.restart({ keepData: true }), redis.restart({ keepData: false })]);
    const info = String(await redisCommand(redis.port, ['INFO', 'server']));
    expect(/process_id:(\d+)/.exec(info)?.[1]).toBe(String(redis.pid));
    const restarted = redis.restart({ keepData: true });
    await redis.stop();
    await restarted;
    await expect(redisCommand(redis.port, ['PING'])).rejects.toThrow('ECONNREFUSED');
    await expect(redis.restart({ keepData: true })).rejects.toThrow('the redis server was stopped');
    await redis.stop();
  });

  it('keeps the process alive that restarts it, while it ignores the signal to end', async () => {
    expect(await worker('restart a stubborn one').finish()).toBe(true);
  });
});

describe('Nothing stays', () => {
  it('of a server that was killed, when the test ends without a stop', async () => {
    const killing = worker('kill the server');
    const folder = await killing.next<string>();
    expect(existsSync(folder)).toBe(true);
    await killing.kill();
    await until('its folder is gone', () => !existsSync(folder));
  });

  it('of a test that is killed while MariaDB makes its first data folder', async () => {
    machine.install(
      'mariadb-install-db',
      'sleep 60 & echo $! > "$HERE/installer.new"; mv "$HERE/installer.new" "$HERE/installer"; wait',
    );
    const starting = worker('start MariaDB');
    const file = join(machine.folder, 'installer');
    await until('the installation runs', () => existsSync(file));
    const installer = Number(readFileSync(file, 'utf8'));
    // A test that is killed between the two has started what nobody knows of.
    await until('it is on the records', () => recorded(machine).some((text) => text.includes('"pid"')));
    await starting.kill();
    await until('the installation has ended', () => !lives(installer));
    await until('its folders are gone', () => {
      const [known, ...others] = leftIn(machine.tmp);
      const templates = join(machine.tmp, known ?? '', 'templates');
      return others.length === 0 && readdirSync(templates).length === 0;
    });
  });

  it('of the servers of a group in which one does not start', async () => {
    machine.install(
      'redis-server',
      `[ "$1" = --version ] && exec ${REAL} --version
       mkdir "$HERE/once" 2>/dev/null && { echo no luck today; exit 7; }
       echo $$ > "$HERE/$$.pid"
       exec ${REAL} "$@"`,
    );
    process.env['PATH'] = machine.env.PATH;
    const error = await failureOf(startIndependentRedis(3));
    expect(String(error)).toMatch(/it ended with 7\nno luck today/);
    const pids = readdirSync(machine.folder).filter((name) => name.endsWith('.pid'));
    expect(pids.length).toBeGreaterThan(0);
    expect(pids.map((name) => parseInt(name, 10)).filter(lives)).toEqual([]);
  });
});

describe('Records of servers', () => {
  it('are neither read nor written where others can write', async () => {
    // A umask would take the right away again.
    await promisify(execFile)('mkdir', ['-m', '777', machine.known('guard-servers')]);
    const refused = worker('start and stop');
    const error = await failureOf(refused.finish());
    expect(String(error)).toMatch(
      /no server is started: others than its owner can write to .*guard-servers-/,
    );
  });

  it('lead to nothing but folders that were made for servers, and kill no process that began at another time', async () => {
    const precious = join(machine.tmp, 'precious');
    const inside = join(machine.tmp, 'precious', 'guard-redis-abcdef');
    const orphaned = join(machine.tmp, 'guard-redis-abcdef');
    for (const folder of [precious, inside, orphaned]) mkdirSync(folder);
    // A process that is gone: the system gives no such number.
    const records = join(machine.known('guard-servers'), 'records', '999999999-1');
    mkdirSync(records, { recursive: true, mode: 0o700 });
    const write = (name: string, text: string): void => writeFileSync(join(records, name), text);
    write('precious', JSON.stringify({ folder: precious, pid: process.pid, began: '1' }));
    write('inside', JSON.stringify({ folder: inside }));
    write('parent', JSON.stringify({ folder: `${machine.tmp}/guard-x/../precious` }));
    write('orphaned', JSON.stringify({ folder: orphaned, pid: process.pid, began: '1' }));
    write('half', '{"folder": "/');
    expect(await worker('start and stop').finish()).toBe(true);
    expect(existsSync(inside)).toBe(true);
    expect(existsSync(orphaned)).toBe(false);
    expect(existsSync(records)).toBe(false);
  });
});
