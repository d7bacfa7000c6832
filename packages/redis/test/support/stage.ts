/** What the tests on real faults share: guards on clients, a plain client to do things to the server, and patience. */
import { createGuard, systemRandom, type Guard } from '@guard/core';
import { Redis } from 'ioredis6';
import type { TestServer } from '@guard/testing/servers';
import { redisLocks, redisState, type RedisConnection, type RedisLocksOptions } from '../../src/index.js';

/** What a test made, ended in the reverse order. */
export class Stage implements AsyncDisposable {
  readonly #ends: (() => unknown)[] = [];

  /** Ends this with the test. */
  ends(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** A guard in a namespace of its own, unless told otherwise. */
  guard(connection: RedisConnection, { locks, namespace }: GuardTerms = {}): Guard {
    const guard = createGuard({
      locks: redisLocks(connection, locks),
      state: redisState(connection),
      namespace: namespace ?? `t-${systemRandom.id()}`,
      grace: '1s',
    });
    this.ends(() => guard.close());
    return guard;
  }

  /** A client of the test's own. */
  admin({ host, port }: Pick<TestServer, 'host' | 'port'>, { enableReadyCheck = true } = {}): Redis {
    const patient = { retryStrategy: () => 50, maxRetriesPerRequest: null };
    const client = new Redis({ host, port, enableReadyCheck, ...patient });
    client.on('error', () => undefined);
    this.ends(() => client.disconnect());
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
  }
}

/** How a guard is made. */
export interface GuardTerms {
  readonly locks?: RedisLocksOptions;
  readonly namespace?: string;
}
