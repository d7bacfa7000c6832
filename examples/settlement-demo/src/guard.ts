/** The guard of the demo: short leases and sweeps, so that a takeover can be watched. */
import { createGuard, type Guard } from '@guard/core';
import type { DataSource } from 'typeorm';
import { type Backends, openBackends } from './backends.js';

/** Makes a guard for one process. */
export function demoGuard(label: string, backends: Backends, ledger: DataSource): Guard {
  return createGuard({
    ...openBackends(backends, ledger),
    namespace: 'demo',
    node: { label },
    defaults: { ttl: '2s' },
    sweepInterval: '1s',
    grace: '5s',
  });
}
