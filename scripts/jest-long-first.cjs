// The order of test files: those that take minutes first, so that the short ones fill the gaps. Jest alone knows times
// only from an earlier run, and a fresh clone has none.
const Sequencer = require('@jest/test-sequencer').default;

const LONG =
  /contract|simulator|mutations|topologies|soak|nest-billing|demo.test.(demo|deep)|programs|outages|postgres-(transaction|locks)|processes|schedules|etcd.test.(cluster|access|cost|leases|secrets)/;

module.exports = class LongFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
};

function isLong({ path }) {
  return LONG.test(path);
}
