/** What is wrong with a call is said before anything is looked for or started. */
import {
  startEtcd,
  startIndependentRedis,
  startMariadb,
  startPgbouncer,
  startPostgres,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
} from '@guard/testing/servers';
import { externalServer } from '../../src/servers/start.js';
import { controlAll } from '../../src/servers/server.js';

/** Called as from JavaScript. */
type Start = (...args: unknown[]) => Promise<unknown>;
const started = jest.fn();

it.each<[string, Start, unknown[], string]>([
  [
    'startRedis',
    startRedis as Start,
    [{ appendonly: true }],
    `startRedis options has no option 'appendonly'`,
  ],
  [
    'startRedis',
    startRedis as Start,
    [{ args: '--port' }],
    'startRedis options.args must be an array of texts',
  ],
  [
    'startRedis',
    startRedis as Start,
    [{ args: [6379] }],
    'startRedis options.args[0] must be a text, got 6379',
  ],
  ['startRedis', startRedis as Start, [null], 'startRedis options must be an object, got null'],
  [
    'startIndependentRedis',
    startIndependentRedis as Start,
    [1.5],
    'startIndependentRedis count must be a whole number from 1 to 64, got 1.5',
  ],
  ['startIndependentRedis', startIndependentRedis as Start, [0], 'from 1 to 64, got 0'],
  [
    'startRedisSentinel',
    startRedisSentinel as Start,
    [{ replicas: -1 }],
    'startRedisSentinel options.replicas must be a whole number from 0 to 8, got -1',
  ],
  [
    'startRedisCluster',
    startRedisCluster as Start,
    [{ masters: '3' }],
    'options.masters must be a whole number',
  ],
  ['startEtcd', startEtcd as Start, [{ nodes: 2 }], 'startEtcd options.nodes must be 1 or 3, got 2'],
  [
    'startEtcd',
    startEtcd as Start,
    [{ tls: {} }],
    'startEtcd options.tls.certFile must be given, got undefined',
  ],
  [
    'startPostgres',
    startPostgres as Start,
    [{ fsync: 'on' }],
    'startPostgres options.fsync must be true or false',
  ],
  [
    'startMariadb',
    startMariadb as Start,
    [{ settings: [] }],
    `startMariadb options has no option 'settings'`,
  ],
  [
    'startPgbouncer',
    startPgbouncer as Start,
    [],
    'startPgbouncer options.postgres must be given, got undefined',
  ],
  ['startPgbouncer', startPgbouncer as Start, [{ postgres: {} }], 'options.postgres.host must be a text'],
  [
    'startPgbouncer',
    startPgbouncer as Start,
    [{ postgres: { host: 'a', port: 1, user: 'u' }, poolMode: 'none' }],
    'options.poolMode must be "session" or "transaction" or "statement", got "none"',
  ],
])('%s names the argument that does not fit (%#)', async (_, start, args, message) => {
  await expect(start(...args)).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining(message),
  });
});

it('restart names the option that it needs, for one server and for several', async () => {
  const server = await externalServer(
    'redis',
    'GUARD_REDIS_URL',
    new URL('redis://127.0.0.1:1'),
    async () => '7.0',
  );
  const restarted = { ...server, restart: started };
  for (const control of [server, controlAll([restarted])]) {
    const restart = control.restart as Start;
    await expect(restart()).rejects.toThrow('restart options.keepData must be given, got undefined');
    await expect(restart({ keepData: 1 })).rejects.toThrow(
      'restart options.keepData must be true or false, got 1',
    );
  }
  expect(started).not.toHaveBeenCalled();
});
