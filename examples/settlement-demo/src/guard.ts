/** The guard of the demo: short leases and sweeps, so that a takeover can be watched. */
import { createGuard, type Guard } from '@guard/core';
import type { DataSource } from 'typeorm';
import { openBackends, type ServedBackends } from './backends.js';

/** A guard, and the connections under it. */
export interface DemoGuard {
  readonly guard: Guard;
  readonly close: () => Promise<void>;
}

/** Makes a guard for one process. */
export async function demoGuard(
  label: string,
  backends: ServedBackends,
  ledger: DataSource,
): Promise<DemoGuard> {
  const { locks, runs, end } = await openBackends(backends, ledger);
  const guard = createGuard({
    locks,
    runs,
    namespace: 'demo',
    node: { label },
    defaults: { ttl: '2s' },
    sweepInterval: '1s',
    grace: '5s',
  });
  const close = async (): Promise<void> => {
    await guard.close();
    end();
  };
  return { guard, close };
}
