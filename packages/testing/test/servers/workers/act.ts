/** One thing that a test does with a server, in a process that can be killed, with an environment of its own. */
import { readlinkSync } from 'node:fs';
import type { WorkerScope } from '@guard/testing';
import { startMariadb, startRedis } from '@guard/testing/servers';
import { findProgram } from '../../../src/servers/find-program.js';
import { freePort } from '../../../src/servers/ports.js';
import { ProgramServer } from '../../../src/servers/program.js';
import { redisRecipe } from '../../../src/servers/redis.js';

export type Act = 'start and stop' | 'kill the server' | 'start MariaDB' | 'restart a stubborn one';

export default async function act({ input, tell, hear }: WorkerScope<Act>): Promise<boolean> {
  switch (input) {
    case 'start and stop':
      await (await startRedis()).stop();
      return true;
    case 'kill the server': {
      const redis = await startRedis();
      const folder = readlinkSync(`/proc/${redis.pid}/cwd`);
      await redis.kill();
      await tell(folder);
      return hear();
    }
    case 'start MariaDB':
      await startMariadb();
      return true;
    case 'restart a stubborn one':
      return restartStubborn();
  }
}

/** As in a plain script: nothing but the server's control call could keep the process alive. */
async function restartStubborn(): Promise<boolean> {
  const recipe = { ...redisRecipe(await freePort(), {}), endWithinMs: 300 };
  // A signal that Redis ignores.
  const server = await ProgramServer.start(findProgram('redis-server') ?? '', {
    ...recipe,
    stopSignal: 'SIGWINCH',
  });
  const first = server.pid;
  process.channel?.unref();
  await server.restart({ keepData: true });
  process.channel?.ref();
  const isNew = server.pid !== undefined && server.pid !== first;
  await server.stop();
  return isNew;
}
