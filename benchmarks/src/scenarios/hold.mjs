// Holding many locks for longer than they last: what their renewal costs the server and the process, and what a lock
// costs in memory. Contenders that do not renew take no part: their locks are gone after their ttl.
import { setTimeout as pause } from 'node:timers/promises';
import { cpuMsOf } from '../process-cpu.mjs';
import { playRounds } from '../rounds.mjs';
import { namesOf } from '../stage.mjs';

const SCENARIO = 'hold';
/** Idle, to know what the process needs for nothing. */
const IDLE_MS = 200;
/** A new process; and the taking and the giving back of each thousand locks. */
const START_MS = 300;
const THOUSAND_MS = 80;

export const hold = {
  fits: (view) => namesOf(view, SCENARIO, takesPart).length > 0,
  expectedMs: (view) =>
    view.bounds.hold.rounds *
    view.bounds.hold.sizes.reduce(
      (sum, size) =>
        holdersOf(view, size).reduce((all, name) => all + onceMs(view, sizeOf(view, name, size)), sum),
      0,
    ),
  play: async (stage) => {
    for (const size of stage.bounds.hold.sizes) await playSize(stage, size);
  },
};

function takesPart({ holds, renews }) {
  return holds === true && renews === true;
}

/** Some room above the smallest ttl of the backend: ten thousand locks take a while to be taken. */
function ttlOf({ backend, bounds }) {
  return Math.max(bounds.hold.ttlMs, 1.5 * (backend.minTtlMs ?? 0));
}

async function playSize(stage, size) {
  const { rounds } = stage.bounds.hold;
  const ttlMs = ttlOf(stage);
  const names = holdersOf(stage, size);
  const sizes = Object.fromEntries(names.map((name) => [name, sizeOf(stage, name, size)]));
  const samples = await playRounds({
    names,
    rounds,
    warmUp: false,
    play: async (name) => {
      const sample = await playOne(stage, name, sizes[name], ttlMs);
      stage.tick(onceMs(stage, sizes[name]));
      return sample;
    },
  });
  for (const name of names) stage.add(SCENARIO, { [name]: samples[name] }, { locks: sizes[name], ttlMs });
}

/** Some need a lease or a connection for each lock, and take as many as they can. */
function sizeOf({ contenders }, name, size) {
  return Math.min(size, contenders[name].mostLocks ?? Infinity);
}

function onceMs(view, locks) {
  return START_MS + ttlOf(view) + IDLE_MS + (locks / 1_000) * THOUSAND_MS;
}

function holdersOf(view, size) {
  const fits = (each) => takesPart(each) && canHold(each, view.bounds.hold.sizes, size);
  return namesOf(view, SCENARIO, fits);
}

/** Who cannot hold so many is not measured twice with what it can hold. */
function canHold({ mostLocks = Infinity }, sizes, size) {
  const smaller = sizes.filter((each) => each < size);
  return smaller.every((each) => each < mostLocks);
}

async function playOne(stage, name, locks, ttlMs) {
  const holder = await stage.processes.get(name);
  try {
    const idle = await shareOf(holder, [], IDLE_MS);
    const { bytesPerLock } = await holder.call('hold', { locks, ttlMs, prefix: `held.${locks}` });
    const stop = await (stage.server.startCheapCount ?? stage.server.startCount)?.();
    const busy = await shareOf(holder, stage.server.pids(), ttlMs);
    const counted = await stop?.();
    if (busy.lost > 0)
      stage.note(`${name} lost ${busy.lost} of ${locks} locks while it held them: its cost is that of fewer`);
    await holder.call('drop');
    return {
      ...(counted === undefined ? {} : { ops_per_s: (counted.operations * 1_000) / busy.ms }),
      client_cpu_pct: Math.max(0, busy.clientPct - idle.clientPct),
      ...(busy.serverPct === undefined ? {} : { server_cpu_pct: busy.serverPct }),
      bytes_per_lock: bytesPerLock,
      locks_lost: busy.lost,
    };
  } finally {
    // What it holds of the next size is measured in a process that held nothing before.
    await stage.processes.end();
  }
}

/** Shares of a core that the holder and the server use while nothing is asked of them. */
async function shareOf(holder, pids, forMs) {
  const [from, serverFrom] = [await holder.call('usage'), cpuMsOf(pids)];
  await pause(forMs);
  const [to, serverTo] = [await holder.call('usage'), cpuMsOf(pids)];
  const ms = to.atMs - from.atMs;
  return {
    ms,
    lost: to.lost,
    clientPct: ((to.cpuMs - from.cpuMs) / ms) * 100,
    serverPct: serverFrom === undefined ? undefined : ((serverTo - serverFrom) / ms) * 100,
  };
}
