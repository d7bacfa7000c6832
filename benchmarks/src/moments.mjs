// Where in its renewal period a fault meets a holder. It is the same place for all contenders of a round, for whoever is
// hit late has the shorter way to the end of his lease; and the rounds share the period out, so that few of them see all of it.

/** In [0, 1), from the seed. */
export function momentOf({ seed, round, rounds }) {
  return (round + shareOf(seed, round)) / rounds;
}

function shareOf(seed, round) {
  const state = Math.imul(seed + 1, 2_654_435_761) + Math.imul(round + 1, 0x9e3779b9);
  const mixed = Math.imul(state ^ (state >>> 15), 2_246_822_519);
  return ((mixed ^ (mixed >>> 13)) >>> 0) / 2 ** 32;
}
