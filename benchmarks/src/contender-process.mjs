// A process with one contender, seen from the stage: calls that are answered, and events that come by themselves. It is
// a worker of @guard/testing, so it can be stopped, continued, killed and given another time of day.
import { join } from 'node:path';
import { startWorker } from '@guard/testing';

const WORKER = join(import.meta.dirname, 'worker.mjs');

export class ContenderProcess {
  /** Who hears what comes by itself, by the name that it carries. */
  listeners = new Map();
  #worker;
  #calls = new Map();
  #lastId = 0;
  #dead;

  constructor({ module, set = 'contenders', contender, address }) {
    this.#worker = startWorker(WORKER, {
      input: { module, set, contender, address },
      // For the memory that a lock takes.
      execArgv: ['--expose-gc'],
    });
    void this.#read();
  }

  get pid() {
    return this.#worker.pid;
  }

  /** How it died by itself, in one line; `undefined` while it lives. */
  get death() {
    return this.#dead;
  }

  call(verb, args = {}) {
    if (this.#dead !== undefined) return Promise.reject(new Error(this.#dead));
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
    this.#worker.tell({ id, verb, args });
    return answered;
  }

  pause() {
    return this.#worker.pause();
  }

  resume() {
    this.#worker.resume();
  }

  /** Moves its wall clock, so that it is this much ahead of the machine's. */
  shiftWallClock(ms) {
    this.#worker.shiftWallClock(ms);
  }

  async kill() {
    await this.#worker.kill();
  }

  async end() {
    if (this.#dead === undefined)
      await Promise.race([this.call('end').catch(() => undefined), this.#worker.ended]);
    if (this.#dead === undefined) await this.#worker.kill();
  }

  async #read() {
    try {
      for (;;) {
        const message = await this.#worker.next();
        if (message.id === undefined) this.listeners.get(message.name)?.(message);
        else this.#settle(message);
      }
    } catch (error) {
      this.#dead = firstLines(error.message);
      for (const { reject } of this.#calls.values()) reject(new Error(this.#dead));
      this.#calls.clear();
    }
  }

  #settle({ id, value, error }) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(error));
  }
}

function firstLines(text) {
  return text.split('\n').slice(0, 12).join('\n');
}
