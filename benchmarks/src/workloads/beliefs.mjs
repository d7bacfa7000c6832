// A holder and what it believes. Every two milliseconds it asks its own library whether it still holds the lock, and
// writes down from when to when the answer was yes; a time in which it could not ask (it was stopped, its loop was
// blocked) is no belief, but what it says right afterwards is.
import { machineMs } from './contend.mjs';

const LOOK_EVERY_MS = 2;
/** Longer than that between two looks, and it did not look. */
const GAP_MS = 40;

export class Beliefs {
  #client;
  #tell;
  #takes = new Map();

  constructor(client, tell) {
    this.#client = client;
    this.#tell = tell;
  }

  /** Waits for the lock, says so, and watches itself from then on. */
  async take({ name, key, ttlMs, address }) {
    const contender = await this.#client(address === undefined ? 'own' : `to ${JSON.stringify(address)}`, {
      ...(address === undefined ? {} : { address }),
    });
    const take = { spans: [], lostAt: undefined, deadlineAt: undefined, over: false };
    this.#takes.set(name, take);
    const held = await contender.hold(key, { ttlMs });
    const at = machineMs();
    Object.assign(take, { held, enteredAt: at, lastLook: at, spans: [[at, at]] });
    held.onLost?.(() => (take.lostAt ??= machineMs()));
    take.timer = setInterval(() => this.#look(name, take), LOOK_EVERY_MS);
    this.#tell({ event: 'entered', name, at, token: held.token });
    // The resource gets a write with the token, if there is one.
    this.#tell({ event: 'write', name, token: held.token });
    return { at, token: held.token };
  }

  async told({ name }) {
    const { spans, lostAt, deadlineAt, enteredAt } = this.#takes.get(name);
    return { spans, lostAt, deadlineAt, enteredAt };
  }

  async letGo({ name }) {
    const take = this.#takes.get(name);
    if (take?.held === undefined) return;
    clearInterval(take.timer);
    take.over = true;
    await Promise.race([
      Promise.resolve(take.held.release()).catch(() => undefined),
      new Promise((resolve) => setTimeout(resolve, 1_000)),
    ]);
  }

  /** The loop of this process stands still; it costs no processor time, which others may need. */
  async block(forMs) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs);
    return { atMs: machineMs() };
  }

  #look(name, take) {
    const now = machineMs();
    const slept = now - take.lastLook > GAP_MS;
    take.lastLook = now;
    // The careless write: whoever wakes up goes on with what it was about to do.
    if (slept) this.#tell({ event: 'write', name, token: take.held.token });
    const remaining = take.held.deadlineInMs?.();
    if (remaining > 0) take.deadlineAt = now + remaining;
    if (!take.held.isHeld()) {
      if (take.believed !== false) take.spans.at(-1)[1] = slept ? take.spans.at(-1)[1] : now;
      take.believed = false;
      return;
    }
    if (slept || take.believed === false) take.spans.push([now, now]);
    take.spans.at(-1)[1] = now;
    take.believed = true;
  }
}
