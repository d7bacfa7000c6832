// Compiled, never run: the published types with every supported compiler, libraries checked too.
import { createGuard, memoryLocks, type Lock } from '@guard/core';
import { startTcpProxy, type TcpProxy } from '@guard/testing';
import { startRedis } from '@guard/testing/servers';

const guard = createGuard({ locks: memoryLocks(), namespace: 'consumer' });

export async function proxied(): Promise<{ lock: Lock; proxy: TcpProxy }> {
  const { host, port } = await startRedis();
  return {
    lock: await guard.acquire('k', { ttl: '5s' }),
    proxy: await startTcpProxy({ target: { host, port } }),
  };
}
