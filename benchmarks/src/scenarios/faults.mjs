// The faults of the expiry scenario. `act` does it to one holder, `all` to what everybody shares; both answer when it
// began, and when the holder can do something again. `keeps`: a holder that renews should not lose its lock by it.
// `together`: faults that leave the processes alone, and are played at once.
import { setTimeout as pause } from 'node:timers/promises';
import { machineMs } from '../workloads/contend.mjs';

/** Until the next holder was let in, or surely will not be. */
const outlive = ({ ttlMs, slackMs }) => ttlMs + slackMs + 200;

export const FAULTS = [
  {
    name: 'sigkill',
    what: 'the holder is killed',
    kills: true,
    ...fitsAll(),
    expectedMs: (terms) => terms.ttlMs + terms.slackMs / 4,
    act: async ({ holder }) => {
      const from = machineMs();
      await holder.kill();
      return { from };
    },
  },
  {
    name: 'min-ttl',
    what: 'the holder is killed, and the ttl is the smallest that the backend has',
    shortest: true,
    kills: true,
    // Where no ttl is shorter anyway, it would be the same again.
    fits: ({ backend, bounds }) => bounds.expiry.ttlMs > backend.minTtlMs,
    expectedMs: (terms) => terms.ttlMs + terms.slackMs / 4,
    act: async ({ holder }) => {
      const from = machineMs();
      await holder.kill();
      return { from };
    },
  },
  {
    name: 'sigstop',
    what: 'the holder is stopped past its ttl, goes on, and writes without looking',
    ...fitsAll(),
    expectedMs: (terms) => terms.ttlMs + terms.slackMs / 3,
    act: async ({ holder, entered, terms }) => {
      await holder.pause();
      const from = machineMs();
      await Promise.race([entered.then(() => pause(100)), pause(outlive(terms))]);
      holder.resume();
      return { from, back: machineMs() };
    },
  },
  {
    name: 'blocked-loop',
    what: 'the event loop of the holder is blocked past its ttl',
    ...fitsAll(),
    expectedMs: (terms) => outlive(terms) + 200,
    act: async ({ holder, terms }) => {
      const from = machineMs();
      const { atMs } = await holder.call('block', { forMs: outlive(terms) });
      return { from, back: atMs };
    },
  },
  {
    name: 'cut-off',
    together: 'around',
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
    what: 'the clock of the next is an hour ahead',
    keeps: true,
    wallShiftMs: 3_600_000,
    ...fitsAll(),
    expectedMs: (terms) => terms.ttlMs + 200,
    act: async ({ terms }) => {
      const from = machineMs();
      await pause(terms.ttlMs);
      return { from };
    },
  },
  {
    name: 'server-restart',
    together: 'around',
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
    together: 'around',
    what: 'the leader of three servers is killed',
    keeps: true,
    startServer: (backend) => backend.startServer({ nodes: 3 }),
    fits: ({ backend }) => backend.hasLeader === true,
    expectedMs: (terms) => terms.ttlMs + 5_000,
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
