/**
 * The hold log of several processes, in one file. Each appends its lines with a time that all processes of a machine
 * share (the monotonic clock of the system), so that the lines of all of them have one order.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { GuardError, invalidArgument } from '@guard/core';
import { requireWhole } from '../argument.js';
import {
  findOverlaps,
  findTokenDisorder,
  LATER,
  requireGrant,
  requireLine,
  type HoldEvent,
} from '../check/hold-log.js';

/** What a holder says. */
type HoldLine = Omit<HoldEvent, 'token'> & { readonly token?: string; readonly pid: number };

/** A line of the file: an event, or that a process was stopped or has died. */
type Line = HoldLine | { readonly type: 'stopped'; readonly atMs: number; readonly pid: number };

/**
 * The log. Make one in every process, on the same file: the first line makes it, the folder must be there before.
 *
 * @throws GuardError `invalid-argument`: the file is no path, or its folder does not exist.
 */
export class SharedHoldLog {
  readonly file: string;

  constructor(file: string) {
    if (typeof file !== 'string' || file === '') throw invalidArgument('file', file, 'must be a path');
    if (!existsSync(dirname(file))) throw invalidArgument('file', file, 'must stand in a folder that exists');
    this.file = file;
  }

  /** A lock was granted. */
  enter(holder: string, lock: { readonly key: string; readonly token: bigint }): void {
    requireGrant(holder, lock);
    this.#append({ type: 'enter', key: lock.key, holder, token: String(lock.token), pid: process.pid });
  }

  /** Any other line. */
  add(type: Exclude<HoldEvent['type'], 'enter'>, holder: string, key: string): void {
    requireLine(type, holder, key);
    this.#append({ type, key, holder, pid: process.pid });
  }

  /** A process stands still, or is dead: whatever it believed to hold, it believes no more. */
  stopped(pid: number): void {
    requireWhole('pid', pid, 1);
    this.#append({ type: 'stopped', pid });
  }

  /**
   * Everything in the log, nothing where nobody wrote to it, in its order; a process that stopped has a `paused` for each belief it had. Where several
   * processes used one holder's name, the process id is added to it.
   *
   * @throws GuardError `unavailable`: a line in the middle of the file cannot be read. What a killed process left of its
   * last line at the end of the file is left out.
   */
  events(): HoldEvent[] {
    const lines = this.#lines();
    const nameOf = namesIn(lines);
    const events: HoldEvent[] = [];
    const beliefs = new Map<string, HoldLine>();
    for (const line of lines) {
      if (line.type === 'stopped') {
        for (const [name, belief] of beliefs) {
          if (belief.pid !== line.pid) continue;
          events.push({ type: 'paused', atMs: line.atMs, key: belief.key, holder: nameOf(belief) });
          beliefs.delete(name);
        }
        continue;
      }
      const { pid, token, ...event } = line;
      const named = { ...event, holder: nameOf(line) };
      events.push(token === undefined ? named : { ...named, token: BigInt(token) });
      const name = JSON.stringify([line.key, line.holder, pid]);
      if (line.type === 'enter' || line.type === 'held') beliefs.set(name, line);
      else beliefs.delete(name);
    }
    return events;
  }

  /**
   * What is wrong with the log, in sentences: overlaps [S1] and tokens that do not grow [S2].
   *
   * @throws GuardError `unavailable`: a line cannot be read, or nobody wrote to the log: whoever looks at a file that
   * is not there finds nothing, and that must not pass for an answer.
   */
  problems(): string[] {
    if (!existsSync(this.file)) {
      throw new GuardError('unavailable', `nobody wrote to the hold log ${this.file}: there is no such file`);
    }
    const events = this.events();
    return [...findOverlaps(events), ...findTokenDisorder(events)];
  }

  #lines(): Line[] {
    if (!existsSync(this.file)) return [];
    // Every whole line ends with a line break.
    const lines = readFileSync(this.file, 'utf8').split('\n').slice(0, -1);
    return lines.map((text, index) => this.#parse(text, index + 1)).sort((a, b) => a.atMs - b.atMs);
  }

  #parse(text: string, number: number): Line {
    try {
      const line: unknown = JSON.parse(text);
      if (isLine(line)) return line;
    } catch {
      // Said below.
    }
    const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
    throw new GuardError(
      'unavailable',
      `line ${number} of the hold log ${this.file} is torn, or no line of a hold log: ${shown}`,
    );
  }

  #append(line: DistributiveOmit<Line, 'atMs'>): void {
    const atMs = Number(process.hrtime.bigint()) / 1e6;
    // One short write to a file that was opened for appending: lines of several processes do not mix.
    appendFileSync(this.file, `${JSON.stringify({ atMs, ...line })}\n`);
  }
}

function isLine(value: unknown): value is Line {
  const { atMs, pid, type, key, holder, token } = (value ?? {}) as Partial<Record<keyof HoldLine, unknown>>;
  if (typeof atMs !== 'number' || !Number.isFinite(atMs) || !Number.isSafeInteger(pid)) return false;
  if (type === 'stopped') return true;
  if (typeof key !== 'string' || typeof holder !== 'string') return false;
  if (type === 'enter') return typeof token === 'string' && /^-?\d+$/.test(token);
  return token === undefined && LATER.some((word) => word === type);
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** What each holder is called: one name that several processes used stands for several holders. */
function namesIn(lines: readonly Line[]): (line: HoldLine) => string {
  const pids = new Map<string, Set<number>>();
  for (const line of lines) {
    if (line.type === 'stopped') continue;
    const used = pids.get(line.holder) ?? new Set();
    pids.set(line.holder, used.add(line.pid));
  }
  return ({ holder, pid }) => ((pids.get(holder)?.size ?? 0) > 1 ? `${holder} (process ${pid})` : holder);
}
