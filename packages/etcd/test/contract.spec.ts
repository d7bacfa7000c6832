/**
 * The contract suites of the ports on a real etcd. The cases of guards are in `guard-contract.spec.ts`.
 */
import { describeLockBackend, describeRunStore, describeStateStore } from '@guard/testing';
import { stopServer } from './support/place.js';
import { portCases } from './support/runners.js';
import { locks, runs, state } from './support/suites.js';

afterAll(stopServer);

describeLockBackend({ runner: portCases, ...locks });
describeStateStore({ runner: portCases, ...state });
describeRunStore({ runner: portCases, ...runs });
