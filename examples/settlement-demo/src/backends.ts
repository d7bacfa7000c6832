/**
 * Where locks and runs of the demo can live. One entry is one backend; the ledger is always in the embedded SQLite
 * file, and its fence takes tokens of any lock backend.
 */
import type { LockBackend, RunStore } from '@guard/core';
import { typeormLocks, typeormRuns } from '@guard/typeorm';
import type { DataSource } from 'typeorm';

interface Backend {
  locks(ledger: DataSource): LockBackend;
  runs(ledger: DataSource): RunStore;
}

const BACKENDS = {
  sqlite: { locks: (ledger) => typeormLocks(ledger), runs: (ledger) => typeormRuns(ledger) },
} as const satisfies Record<string, Backend>;

/** A backend that exists. */
export type BackendName = keyof typeof BACKENDS;

/** Which backend does what. */
export interface Backends {
  readonly locks: BackendName;
  readonly runs: BackendName;
}

/** The names that `--backend`, `--locks` and `--runs` take. */
export const BACKEND_NAMES = Object.keys(BACKENDS) as readonly BackendName[];

/** Opens both, as `createGuard` takes them. */
export function openBackends(
  { locks, runs }: Backends,
  ledger: DataSource,
): { locks: LockBackend; runs: RunStore } {
  return { locks: BACKENDS[locks].locks(ledger), runs: BACKENDS[runs].runs(ledger) };
}
