// The progress bar: what part of the expected time is over, and how long the rest takes at the speed seen so far. Where
// the output is no terminal it is a line now and then.
import { performance } from 'node:perf_hooks';

const WIDTH = 30;
const LINE_EVERY_MS = 10_000;

export class Progress {
  #expectedMs;
  #doneMs = 0;
  #begun = performance.now();
  #shown = -Infinity;
  #out;

  constructor(expectedMs, out = process.stdout) {
    this.#expectedMs = Math.max(1, expectedMs);
    this.#out = out;
  }

  get elapsedMs() {
    return performance.now() - this.#begun;
  }

  tick(ms, what) {
    this.#doneMs += ms;
    if (this.elapsedMs - this.#shown < (this.#out.isTTY ? 200 : LINE_EVERY_MS)) return;
    this.#shown = this.elapsedMs;
    const line = progressLine(this.#doneMs / this.#expectedMs, this.elapsedMs, what);
    this.#out.write(this.#out.isTTY ? `\r${line}\x1b[K` : `${line}\n`);
  }

  clear() {
    if (this.#out.isTTY) this.#out.write('\r\x1b[K');
  }

  end() {
    this.clear();
  }
}

/** One line; nobody knows how long the rest takes before anything is done. */
export function progressLine(share, elapsedMs, what) {
  const part = Math.min(1, Math.max(0, share));
  const full = Math.round(part * WIDTH);
  const bar = `${'█'.repeat(full)}${'░'.repeat(WIDTH - full)}`;
  const left = part > 0 ? `${Math.ceil(((elapsedMs / part) * (1 - part)) / 1_000)} s left` : 'starting';
  return `${bar} ${String(Math.round(part * 100)).padStart(3)} %  ${left}  ${what}`;
}
