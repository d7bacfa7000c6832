/**
 * One subscription that outlives its connections. What a client library does by itself after a break depends on its
 * settings and tells nobody that messages were lost; so each connection here is used once, a break is told, and the
 * next one is opened until it works, on whatever server is there by then.
 */
import { systemClock, type Timer } from '@guard/core';
import type { Channel } from './connection.js';

/** One connection to open. */
export interface Line {
  readonly channel: string;
  readonly onMessage: (message: string) => void;
  /** Called once when it is of no use any more. */
  readonly onBroken: () => void;
  /** Nobody waits for it, so it keeps no process alive, also while it is being opened (L5). */
  readonly background: boolean;
  /** Aborted: it is not wanted any more, however far it is. */
  readonly signal: AbortSignal;
}

/** Opens one connection and subscribes on it. */
export type OpenLine = (line: Line) => Promise<Channel>;

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** A server that hangs takes a connection and says nothing. */
const OPEN_WITHIN_MS = 5_000;

/** Opens the first connection, and rejects where that fails; from then on keeps one open. */
export async function keepSubscribed(
  open: OpenLine,
  channel: string,
  onMessage: (message: string) => void,
  onState: (open: boolean) => void,
): Promise<Channel> {
  const kept = new KeptChannel(open, channel, onMessage, onState);
  await kept.open(false);
  return kept;
}

class KeptChannel implements Channel {
  private line: Channel | undefined;
  private opening: AbortController | undefined;
  private closed = false;
  private failures = 0;
  private pause: Timer | undefined;

  constructor(
    private readonly openLine: OpenLine,
    private readonly channel: string,
    private readonly onMessage: (message: string) => void,
    private readonly onState: (open: boolean) => void,
  ) {}

  async open(background: boolean): Promise<void> {
    let broken = false;
    const opening = new AbortController();
    this.opening = opening;
    const late = (): void => opening.abort();
    const timer = systemClock.setTimer(late, OPEN_WITHIN_MS, { ref: false });
    const line = await this.openLine({
      channel: this.channel,
      background,
      signal: opening.signal,
      onMessage: (message) => {
        if (!this.closed) this.onMessage(message);
      },
      onBroken: () => {
        broken = true;
        // While it is being opened there is no line yet; then the end of this function sees to it.
        if (this.line !== undefined && !this.closed) this.lost();
      },
    }).finally(() => timer.cancel());
    if (this.closed || broken) {
      await line.close();
      if (!this.closed) throw new Error('the connection broke while it was being opened');
      return;
    }
    this.line = line;
    this.failures = 0;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.pause?.cancel();
    this.opening?.abort();
    await this.line?.close();
  }

  private lost(): void {
    const { line } = this;
    this.line = undefined;
    void line?.close().catch(() => undefined);
    this.onState(false);
    this.reopen();
  }

  private reopen(): void {
    if (this.closed) return;
    this.open(true).then(
      () => {
        if (!this.closed) this.onState(true);
      },
      () => {
        this.failures += 1;
        const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - 1));
        this.pause = systemClock.setTimer(() => this.reopen(), pauseMs, { ref: false });
      },
    );
  }
}
