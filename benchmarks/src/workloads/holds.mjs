// Many locks held by one process, renewed as the contender does it, and what that costs the process.
import { setTimeout as pause } from 'node:timers/promises';
import { machineMs } from './contend.mjs';

const AT_ONCE = 256;

export class Holds {
  #client;
  #held = [];
  #lost = 0;

  constructor(client) {
    this.#client = client;
  }

  /** Takes them; answers how long that took and what each holds of the process's memory, in bytes. */
  async take({ locks, ttlMs, prefix }) {
    const contender = await this.#client();
    await collect();
    const before = used();
    const from = machineMs();
    let next = 0;
    const taker = async () => {
      while (next < locks) {
        const key = `${prefix}.${(next += 1)}`;
        this.#held.push(await contender.hold(key, { ttlMs }));
      }
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, locks) }, taker));
    const ms = machineMs() - from;
    await collect();
    return { ms, bytesPerLock: Math.max(0, used() - before) / locks };
  }

  async usage() {
    const { user, system } = process.cpuUsage();
    this.#lost = this.#held.filter((each) => !each.isHeld()).length;
    return { cpuMs: (user + system) / 1_000, atMs: machineMs(), lost: this.#lost };
  }

  async drop() {
    const all = this.#held;
    this.#held = [];
    while (all.length > 0)
      await Promise.all(
        all.splice(0, AT_ONCE).map((each) => Promise.resolve(each.release()).catch(() => undefined)),
      );
  }
}

function used() {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function collect() {
  await pause(50);
  globalThis.gc?.();
}
