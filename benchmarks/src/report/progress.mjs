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
    // A line that the terminal breaks would stay where it is, and the next one come below it.
    const room = this.#out.isTTY ? (this.#out.columns || 80) - 1 : Infinity;
    const line = progressLine(this.#doneMs / this.#expectedMs, this.elapsedMs, what, room);
    this.#out.write(this.#out.isTTY ? `\r${line}\x1b[K` : `${line}\n`);
  }

  clear() {
    if (this.#out.isTTY) this.#out.write('\r\x1b[K');
  }

  end() {
    this.clear();
  }
}

/** One line of at most `room` characters; nobody knows how long the rest takes before anything is done. */
export function progressLine(share, elapsedMs, what, room = Infinity) {
  const part = Math.min(1, Math.max(0, share));
  const left = part > 0 ? `${spanText((elapsedMs / part) * (1 - part))} left` : 'starting';
  const text = ` ${String(Math.round(part * 100)).padStart(3)} %  ${left}  ${what}`;
  const width = Math.max(0, Math.min(WIDTH, room - text.length));
  const full = Math.round(part * width);
  return `${'█'.repeat(full)}${'░'.repeat(width - full)}${text}`.slice(
    0,
    room === Infinity ? undefined : room,
  );
}

function spanText(ms) {
  const seconds = Math.ceil(ms / 1_000);
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
}
