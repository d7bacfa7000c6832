/** Opens a Redis for the programs of an application. */
import { kvRuns } from '@guard/core';
import { Redis } from 'ioredis6';
import type { Opener } from '../../../../test/support/programs/opener.js';
import { redisLocks, redisState } from '../../src/index.js';
import { fromIoredis } from '../../src/ioredis.js';

export interface RedisPlace {
  readonly port: number;
  readonly username: string;
  readonly password: string;
}

const open: Opener<RedisPlace> = async (place) => {
  const client = new Redis({ host: '127.0.0.1', ...place });
  client.on('error', () => undefined);
  const connection = fromIoredis(client);
  return {
    ...{ locks: redisLocks(connection), runs: kvRuns(redisState(connection)) },
    close: async () => client.disconnect(),
  };
};
export default open;
