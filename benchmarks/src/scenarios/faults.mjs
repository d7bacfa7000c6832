// The faults of the expiry scenario. `hit` does it to one holder, `all` to what everybody shares; both answer when it
// began, and when the holder can do something again. `keeps`: a holder that renews should not lose its lock by it.
// `act`: faults of the same act are played at once, for all that anybody does is to wait; those of `around` leave the
// processes alone, those of `within` do not. `cast`: which of a contender's processes hold and wait, so that no fault of an
// act meets the holder of another.
import { setTimeout as pause } from 'node:timers/promises';
import { machineMs } from '../workloads/contend.mjs';

/** Until the next holder was let in, or surely will not be. */
const outlive = ({ ttlMs, slackMs }) => ttlMs + slackMs + 200;

export const FAULTS = [
  {
    name: 'sigkill',
    act: 'within',
    cast: [0, 1],
    what: 'the holder is killed',
    kills: true,
    ...fitsAll(),
    expectedMs: (terms) => terms.ttlMs + terms.slackMs / 4,
    hit: async ({ holder }) => {
      const from = machineMs();
      await holder.kill();
      return { from };
    },
  },
  {
    name: 'min-ttl',
    act: 'within',
    cast: [2, 1],
    what: 'the holder is killed, and the ttl is the smallest that the backend has',
    shortest: true,
    kills: true,
    // Where no ttl is shorter anyway, it would be the same again.
    fits: ({ backend, bounds }) => bounds.expiry.ttlMs > backend.minTtlMs,
    expectedMs: (terms) => terms.ttlMs + terms.slackMs / 4,
    hit: async ({ holder }) => {
      const from = machineMs();
      await holder.kill();
      return { from };
    },
  },
  {
    name: 'sigstop',
    act: 'within',
    cast: [3, 1],
    what: 'the holder is stopped past its ttl, goes on, and writes without looking',
    ...fitsAll(),
    expectedMs: (terms) => terms.ttlMs + terms.slackMs / 3,
    hit: async ({ holder, entered, terms }) => {
      await holder.pause();
      const from = machineMs();
      await Promise.race([entered.then(() => pause(100)), pause(outlive(terms))]);
      holder.resume();
      return { from, back: machineMs() };
    },
  },
  {
    name: 'blocked-loop',
    act: 'within',
    cast: [4, 1],
    what: 'the event loop of the holder is blocked past its ttl',
    ...fitsAll(),
    expectedMs: (terms) => outlive(terms) + 200,
    hit: async ({ holder, terms }) => {
      const from = machineMs();
      const { atMs } = await holder.call('block', { forMs: outlive(terms) });
      return { from, back: atMs };
    },
  },
  {
    name: 'cut-off',
    act: 'around',
    cast: [0, 1],
    what: 'nothing passes between the holder and its server any more, and nothing is said about it',
    proxied: true,
    fits: ({ backend }) => backend.hasServer === true,
    expectedMs: (terms) => outlive(terms) + 200,
    all: async ({ proxy, terms }) => {
      proxy.cut();
      const from = machineMs();
      await pause(outlive(terms));
      return { from };
    },
  },
  {
    name: 'skewed-clock',
    act: 'around',
    cast: [2, 3],
    what: 'the clock of the next is an hour ahead',
    keeps: true,
    wallShiftMs: 3_600_000,
    ...fitsAll(),
    expectedMs: (terms) => terms.ttlMs + 200,
    hit: async ({ terms }) => {
      const from = machineMs();
      await pause(terms.ttlMs);
      return { from };
    },
  },
  {
    name: 'server-restart',
    act: 'around',
    cast: [0, 1],
    what: 'the server ends and starts again with its data',
    keeps: true,
    startServer: (backend) => backend.startServer({ durable: true }),
    fits: ({ backend }) => backend.hasServer === true,
    expectedMs: (terms) => terms.ttlMs + 1_500,
    all: async ({ server, terms }) => {
      const from = machineMs();
      await server.control.restart({ keepData: true });
      await pause(terms.ttlMs);
      return { from };
    },
  },
  {
    name: 'leader-change',
    act: 'around',
    cast: [0, 1],
    what: 'the leader of three servers is killed',
    keeps: true,
    startServer: (backend) => backend.startServer({ nodes: 3 }),
    several: true,
    // It takes as long as the group needs to notice.
    fits: ({ backend, bounds }) => backend.hasLeader === true && !bounds.quick,
    expectedMs: (terms) => terms.ttlMs + 6_000,
    all: async ({ server, terms }) => {
      const from = machineMs();
      await server.changeLeader();
      await pause(terms.ttlMs);
      return { from };
    },
  },
];

function fitsAll() {
  return { fits: () => true };
}
