/**
 * The contract suites on a cluster of three nodes, over all of them: those of the ports, and as they are written
 * (`GUARD_PROFILE=full`) those of guards as well. Three servers beside other tests leave no machine to short waits.
 */
import { describeLockBackend, describeRunStore, describeStateStore } from '@guard/testing';
import { onThreeNodes, stopServer } from '../support/place.js';
import { clusterCases as runner } from '../support/runners.js';
import { locks, runs, state } from '../support/suites.js';

onThreeNodes();
afterAll(stopServer);

describeLockBackend({ runner, ...locks });
describeStateStore({ runner, ...state });
describeRunStore({ runner, ...runs });
