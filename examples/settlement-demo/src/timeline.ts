/** The demo's output: one line for each thing that happened. Colour only on a terminal that wants it. */
import type { WriteStream } from 'node:tty';
import { timeOf } from './seconds.js';

/** How a line is meant. */
export type Tone = 'plain' | 'quiet' | 'good' | 'takeover' | 'fault';

/** What a line says. */
export interface Line {
  readonly text: string;
  readonly node?: string | undefined;
  /** The occurrence it is about. */
  readonly second?: number | undefined;
  readonly tone?: Tone;
}

const CODES: Record<Tone, string | undefined> = {
  plain: undefined,
  quiet: '2',
  good: '32',
  takeover: '33',
  fault: '31',
};
const NODE_WIDTH = 8;

/** Writes lines with the time since it was made. */
export class Timeline {
  private readonly startedAt = performance.now();
  private readonly colours: boolean;

  constructor(private readonly out: Pick<WriteStream, 'write'> & { readonly isTTY?: boolean }) {
    const { NO_COLOR, TERM } = process.env;
    this.colours = out.isTTY === true && !NO_COLOR && TERM !== 'dumb';
  }

  get elapsedMs(): number {
    return Math.round(performance.now() - this.startedAt);
  }

  /** A line of the timeline: when, which occurrence, which node, what. */
  happened({ text, node = '', second, tone = 'plain' }: Line): void {
    const time = `${(this.elapsedMs / 1_000).toFixed(1).padStart(5)} s`;
    const occurrence = second === undefined ? ' '.repeat(8) : timeOf(second);
    this.say(`${time}  ${occurrence}  ${node.padEnd(NODE_WIDTH)}  ${text}`, tone);
  }

  /** A line without a time. */
  say(text = '', tone: Tone = 'plain'): void {
    const code = this.colours ? CODES[tone] : undefined;
    this.out.write(code === undefined ? `${text}\n` : `\u001b[${code}m${text}\u001b[0m\n`);
  }
}

/** `12,345.67`, from whole cents. */
export function money(cents: number): string {
  return (cents / 100).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

/** `10,000`. */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}
