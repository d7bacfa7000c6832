/** The contract suites on a cluster of three nodes, over all of them. */
import { describeLockBackend, describeRunStore, describeStateStore } from '@guard/testing';
import { onThreeNodes, stopServer } from '../support/place.js';
import { clusterCases as runner } from '../support/runners.js';
import { locks, runs, state } from '../support/suites.js';

onThreeNodes();
afterAll(stopServer);

describeLockBackend({ runner, ...locks });
describeStateStore({ runner, ...state });
describeRunStore({ runner, ...runs });
