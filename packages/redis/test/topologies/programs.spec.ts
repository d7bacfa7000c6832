/** Whole programs on one Redis. */
import { join } from 'node:path';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { Redis } from 'ioredis6';
import { describePrograms } from '../../../../test/support/programs/describe-programs.js';
import type { RedisPlace } from '../workers/open.js';

jest.setTimeout(90_000);

const APP = { username: 'app', password: 'of the programs' };

let server: TestServer;
let admin: Redis;

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
  admin.on('error', () => undefined);
});

afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

const allow = (...rules: string[]): Promise<unknown> => admin.call('ACL', 'SETUSER', APP.username, ...rules);

describePrograms('Redis', {
  opener: join(__dirname, '../workers/open.ts'),
  newPlace: async () => {
    await allow('reset', 'on', `>${APP.password}`, '~*', '&*', '+@all');
    return { place: { port: server.port, ...APP } satisfies RedisPlace, remove: async () => undefined };
  },
  away: async () => {
    await server.pause();
    return () => server.resume();
  },
  breakages: [
    {
      what: 'the rights of their user are withdrawn',
      code: 'unavailable',
      begin: async () => {
        await allow('-@all', '+ping');
        return () => allow('+@all');
      },
    },
    {
      what: 'the server answers nothing',
      code: 'unavailable',
      begin: async () => {
        await server.pause();
        return () => server.resume();
      },
    },
  ],
});
