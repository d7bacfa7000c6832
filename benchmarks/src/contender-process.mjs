// A process with one contender, seen from the stage: calls that are answered, and events that come by themselves. It is
// a worker of @guard/testing, so it can be stopped, continued, killed and given another time of day.
import { join } from 'node:path';
import { startWorker } from '@guard/testing';

/** Longer than what it was asked to do takes, and it does not answer any more. */
const ANSWER_MS = 60_000;
const END_MS = 5_000;
const WORKER = join(import.meta.dirname, 'worker.mjs');

export class ContenderProcess {
  /** Who hears what comes by itself, by the name that it carries. */
  listeners = new Map();
  #worker;
  #calls = new Map();
  #lastId = 0;
  #dead;
  #name;

  constructor({ module, set = 'contenders', contender, address }) {
    this.#name = contender;
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

  /** What it answers. Who says nothing for `limitMs` is killed, for libraries wait without an end for a server that is gone. */
  async call(verb, args = {}, limitMs = limitOf(args)) {
    if (this.#dead !== undefined) throw new Error(this.#dead);
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
    this.#worker.tell({ id, verb, args });
    if (limitMs === Infinity) return answered;
    const timer = setTimeout(() => this.#giveUp(id, verb, limitMs), limitMs);
    try {
      return await answered;
    } finally {
      clearTimeout(timer);
    }
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
      await Promise.race([this.call('end', {}, END_MS).catch(() => undefined), this.#worker.ended]);
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

  #giveUp(id, verb, limitMs) {
    this.#settle({ id, error: `${this.#name} did not answer '${verb}' within ${limitMs / 1_000} s` });
    void this.#worker.kill();
  }

  #settle({ id, value, error }) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(error));
  }
}

/** What lasts as long as it is told, and then as long as it has to. */
function limitOf({ forMs = 0 }) {
  return ANSWER_MS + (Number.isFinite(forMs) ? forMs : ANSWER_MS);
}

function firstLines(text) {
  return text.split('\n').slice(0, 12).join('\n');
}
