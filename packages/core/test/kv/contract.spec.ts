/**
 * The contract of run stores on a state store that promises no more than the port does: each key for itself.
 */
import { kvRuns, memoryState } from '@guard/core';
import { describeRunStore, SeededRandom, VirtualClock } from '@guard/testing';
import { loose } from './stage.js';

const random = new SeededRandom();

describeRunStore({
  runner: { describe, it, skip: it.skip },
  name: `kvRuns on a state store without batches in one step (seed ${random.seed})`,
  traits: kvRuns(memoryState()).traits,
  create: async () => {
    const clock = new VirtualClock();
    const state = loose(memoryState({ clock }), random, () => Promise.resolve());
    return { store: kvRuns(state), connect: async () => kvRuns(state), clock, cleanup: () => state.close() };
  },
});
