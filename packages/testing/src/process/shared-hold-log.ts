/**
 * The hold log of several processes, in one file. Each appends its lines with a time that all processes of a machine
 * share (the monotonic clock of the system), so that the lines of all of them have one order.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { findOverlaps, findTokenDisorder, type HoldEvent } from '../check/hold-log.js';

/** A line of the file: an event, or that a process was stopped or killed. */
type Line =
  | (Omit<HoldEvent, 'token'> & { readonly token?: string; readonly pid: number })
  | { readonly type: 'stopped'; readonly atMs: number; readonly pid: number };

/** The log. Make one in every process, on the same file. */
export class SharedHoldLog {
  readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  /** A lock was granted. */
  enter(holder: string, lock: { readonly key: string; readonly token: bigint }): void {
    this.#append({ type: 'enter', key: lock.key, holder, token: String(lock.token), pid: process.pid });
  }

  /** Any other line. */
  add(type: Exclude<HoldEvent['type'], 'enter'>, holder: string, key: string): void {
    this.#append({ type, key, holder, pid: process.pid });
  }

  /** A process stands still, or is dead: whatever it believed to hold, it believes no more. */
  stopped(pid: number): void {
    this.#append({ type: 'stopped', pid });
  }

  /** Everything in the log, in its order; a process that stopped has a `paused` for each belief it had. */
  events(): HoldEvent[] {
    const events: HoldEvent[] = [];
    const beliefs = new Map<
      string,
      { readonly key: string; readonly holder: string; readonly pid: number }
    >();
    for (const line of this.#lines()) {
      if (line.type === 'stopped') {
        for (const [name, { key, holder, pid }] of beliefs) {
          if (pid !== line.pid) continue;
          events.push({ type: 'paused', atMs: line.atMs, key, holder });
          beliefs.delete(name);
        }
        continue;
      }
      const { pid, token, ...event } = line;
      events.push(token === undefined ? event : { ...event, token: BigInt(token) });
      const name = JSON.stringify([line.key, line.holder]);
      if (line.type === 'enter' || line.type === 'held') beliefs.set(name, { ...line, pid });
      else beliefs.delete(name);
    }
    return events;
  }

  /** What is wrong with the log, in sentences: overlaps [S1] and tokens that do not grow [S2]. */
  problems(): string[] {
    const events = this.events();
    return [...findOverlaps(events), ...findTokenDisorder(events)];
  }

  #lines(): Line[] {
    if (!existsSync(this.file)) return [];
    // Every line ends with a line break.
    const lines = readFileSync(this.file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Line).sort((a, b) => a.atMs - b.atMs);
  }

  #append(line: DistributiveOmit<Line, 'atMs'>): void {
    const atMs = Number(process.hrtime.bigint()) / 1e6;
    // One short write to a file that was opened for appending: lines of several processes do not mix.
    appendFileSync(this.file, `${JSON.stringify({ atMs, ...line })}\n`);
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
