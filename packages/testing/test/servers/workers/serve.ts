/** Starts a server, tells which, and waits for whatever the test does to it. */
import type { WorkerScope } from '@guard/testing';
import { startPostgres } from '@guard/testing/servers';

export default async function serve({ tell, hear }: WorkerScope): Promise<void> {
  const { pid } = await startPostgres();
  await tell(pid);
  await hear();
}
