/**
 * The cases that a guard must stand, on a real etcd. Those of the ports are in `contract.spec.ts`.
 */
import { describeLockBackend, describeStateStore } from '@guard/testing';
import { stopServer } from './support/place.js';
import { guardCases } from './support/runners.js';
import { locks, state } from './support/suites.js';

afterAll(stopServer);

describeLockBackend({ runner: guardCases, ...locks });
describeStateStore({ runner: guardCases, ...state });
