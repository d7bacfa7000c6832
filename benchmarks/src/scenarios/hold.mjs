// Holding many locks for longer than they last: what their renewal costs the server and the process, and what a lock
// costs in memory. Contenders that do not renew take no part: their locks are gone after their ttl.
import { setTimeout as pause } from 'node:timers/promises';
import { cpuMsOf } from '../process-cpu.mjs';
import { playRounds } from '../rounds.mjs';
import { namesOf } from '../stage.mjs';

const SCENARIO = 'hold';
/** Idle, to know what the process needs for nothing. */
const IDLE_MS = 250;
/** The taking and the giving back, for 10,000 locks. */
const AROUND_MS = 900;

export const hold = {
  fits: (view) => namesOf(view, SCENARIO, takesPart).length > 0,
  expectedMs: (view) =>
    view.bounds.hold.sizes.length *
    namesOf(view, SCENARIO, takesPart).length *
    view.bounds.hold.rounds *
    (ttlOf(view) + IDLE_MS + AROUND_MS),
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
  // Some need a lease or a connection for each lock, and take as many as they can.
  const sizes = {};
  const names = stage.names(
    SCENARIO,
    (each) => takesPart(each) && canHold(each, stage.bounds.hold.sizes, size),
  );
  for (const name of names) sizes[name] = Math.min(size, stage.contenders[name].mostLocks ?? Infinity);
  const samples = await playRounds({
    names,
    rounds,
    warmUp: false,
    play: async (name) => {
      const sample = await playOne(stage, name, sizes[name], ttlMs);
      stage.tick(ttlMs + IDLE_MS + AROUND_MS);
      return sample;
    },
  });
  for (const name of names) stage.add(SCENARIO, { [name]: samples[name] }, { locks: sizes[name], ttlMs });
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
    if (busy.lost > 0) stage.note(`${name} lost ${busy.lost} of ${locks} locks while it held them`);
    await holder.call('drop');
    return {
      ...(counted === undefined ? {} : { ops_per_s: (counted.operations * 1_000) / busy.ms }),
      client_cpu_pct: Math.max(0, busy.clientPct - idle.clientPct),
      ...(busy.serverPct === undefined ? {} : { server_cpu_pct: busy.serverPct }),
      bytes_per_lock: bytesPerLock,
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
