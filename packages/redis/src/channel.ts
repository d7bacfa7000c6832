/**
 * One connection for all messages of a client, which outlives its breaks. What a client library does by itself after a
 * break depends on its settings and tells nobody that messages were lost; so each connection here is used once, a break
 * is told, and the next one is opened until it works, on whatever server is there by then.
 */
import { systemClock, type Timer } from '@guard/core';
import type { Channel } from './connection.js';

/** What a connection is opened with. It keeps no process alive, neither open nor on its way (L5). */
export interface LineTerms {
  readonly onMessage: (channel: string, message: string) => void;
  /** Called once when it is of no use any more. */
  readonly onBroken: () => void;
  /** Aborted: it is not wanted any more, however far it is. */
  readonly signal: AbortSignal;
}

/** One open connection. */
export interface Line {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** A sign that the server at its other end is there. Any answer will do, a refusal as well. */
  ping(): Promise<unknown>;
  /** Of a cluster: a sign that messages of all other members come in. */
  echo?(): Promise<unknown>;
  close(): Promise<void>;
}

/** Opens one connection. */
export type OpenLine = (terms: LineTerms) => Promise<Line>;

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** A server that hangs takes a connection and says nothing. */
const ANSWER_WITHIN_MS = 5_000;
/** A wire that was cut looks like a quiet time, so a connection is asked for a sign of life that often. */
const ASK_EVERY_MS = 5_000;
/**
 * While somebody waits, hand-overs would be missed meanwhile: a connection that was quiet for so long is asked at once,
 * and given up soon. One that was only slow is opened again, and nothing is lost.
 */
const QUIET_MS = 1_000;
const SIGN_WITHIN_MS = 2_000;

/** Somebody who listens to a channel. */
interface Listener {
  readonly onMessage: (message: string) => void;
  readonly onState: (open: boolean) => void;
  /** Somebody waits for a message at this moment. */
  readonly isAwaited: () => boolean;
  /** It was told that messages may be lost, and not yet that they come again. */
  lost: boolean;
}

interface Subscribed {
  readonly name: string;
  readonly listeners: Set<Listener>;
  /** Messages come. */
  open: boolean;
  asking: Promise<void> | undefined;
}

/** The messages of one client: all its channels on one connection, which is there while somebody listens. */
export class Messages {
  private readonly channels = new Map<string, Subscribed>();
  private line: Line | undefined;
  private opening: { readonly line: Promise<Line>; giveUp(): void } | undefined;
  private openedAtMs = 0;
  private heardAtMs = 0;
  private failures = 0;
  private pause: Timer | undefined;

  constructor(private readonly openLine: OpenLine) {}

  /** Rejects where the channel cannot be heard now; from then on it is heard again after every break. */
  async subscribe(
    name: string,
    onMessage: (message: string) => void,
    onState: (open: boolean) => void,
    isAwaited: () => boolean = () => true,
  ): Promise<Channel> {
    const listener: Listener = { onMessage, onState, isAwaited, lost: false };
    const channel = this.channelOf(name);
    channel.listeners.add(listener);
    // Somebody waits for this, which keeps the process alive; the connection itself never does (L5).
    const waiting = systemClock.setTimer(() => undefined, 2 * ANSWER_WITHIN_MS);
    try {
      await this.heard(channel);
    } catch (error) {
      this.leave(channel, listener);
      throw error;
    } finally {
      waiting.cancel();
    }
    return { close: async () => this.leave(channel, listener) };
  }

  /** The connection leads to where nothing is said any more: another one is opened. */
  broke(): void {
    const { line } = this;
    if (line === undefined) return;
    this.line = undefined;
    quietly(line.close());
    for (const channel of this.channels.values()) {
      if (!channel.open) continue;
      channel.open = false;
      for (const listener of channel.listeners) {
        listener.lost = true;
        listener.onState(false);
      }
    }
    // One that breaks as soon as it is open is a failure too.
    this.failures = nowMs() - this.openedAtMs > LONGEST_PAUSE_MS ? 0 : this.failures + 1;
    this.mendLater();
  }

  private channelOf(name: string): Subscribed {
    const known = this.channels.get(name);
    if (known !== undefined) return known;
    const made = { name, listeners: new Set<Listener>(), open: false, asking: undefined };
    this.channels.set(name, made);
    return made;
  }

  private heard(channel: Subscribed): Promise<void> {
    if (channel.open) return Promise.resolve();
    channel.asking ??= this.ask(channel).finally(() => (channel.asking = undefined));
    return channel.asking;
  }

  private async ask(channel: Subscribed): Promise<void> {
    const line = this.line ?? (await this.opened());
    await this.answered(line, line.subscribe(channel.name));
    if (this.line !== line) throw new Error('the connection broke before the channel was heard');
    if (this.channels.get(channel.name) === channel) channel.open = true;
    else if (!this.channels.has(channel.name)) quietly(line.unsubscribe(channel.name));
  }

  /** One that hangs breaks here, and nobody waits for its answer any longer. */
  private answered(line: Line, answer: Promise<unknown>, withinMs = ANSWER_WITHIN_MS): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const late = (): void => {
        reject(new Error('the server did not answer in time'));
        if (this.line === line) this.broke();
      };
      const timer = systemClock.setTimer(late, withinMs, { ref: false });
      answer.finally(() => timer.cancel()).then(resolve, reject);
    });
  }

  private opened(): Promise<Line> {
    if (this.opening === undefined) {
      const signal = new AbortController();
      const line = this.open(signal).finally(() => {
        if (this.opening === opening) this.opening = undefined;
      });
      const opening = { line, giveUp: () => signal.abort() };
      this.opening = opening;
    }
    return this.opening.line;
  }

  private async open(abort: AbortController): Promise<Line> {
    const { signal } = abort;
    const timer = systemClock.setTimer(() => abort.abort(), ANSWER_WITHIN_MS, { ref: false });
    let broken = false;
    // Known to those below only once it is there.
    const made: { line?: Line } = {};
    const opened = this.openLine({
      signal,
      onMessage: (name, message) => {
        this.heardAtMs = nowMs();
        for (const { onMessage } of this.channels.get(name)?.listeners ?? []) onMessage(message);
      },
      onBroken: () => {
        broken = true;
        // While it is being opened there is no line yet; then the end of this function sees to it.
        if (made.line !== undefined && this.line === made.line) this.broke();
      },
    });
    const line = await unlessAborted(opened, signal).finally(() => timer.cancel());
    if (broken || signal.aborted) {
      quietly(line.close());
      throw new Error('the connection broke while it was being opened');
    }
    made.line = line;
    this.line = line;
    this.openedAtMs = nowMs();
    this.listenFor(line);
    return line;
  }

  /** Asks a connection for signs of life for as long as it is the one. */
  private listenFor(line: Line): void {
    this.repeat(line, ASK_EVERY_MS, () => this.answered(line, Promise.all([line.ping(), line.echo?.()])));
    this.repeat(line, QUIET_MS, async () => {
      if (nowMs() - this.heardAtMs < QUIET_MS || !this.isAwaited()) return;
      await this.answered(line, line.ping(), SIGN_WITHIN_MS);
    });
  }

  private repeat(line: Line, everyMs: number, ask: () => Promise<unknown>): void {
    const next = async (): Promise<void> => {
      if (this.line !== line) return;
      // One that is too late breaks there.
      await ask().catch(() => undefined);
      this.repeat(line, everyMs, ask);
    };
    systemClock.setTimer(() => void next(), everyMs, { ref: false });
  }

  private isAwaited(): boolean {
    for (const { listeners } of this.channels.values()) {
      for (const { isAwaited } of listeners) if (isAwaited()) return true;
    }
    return false;
  }

  private leave(channel: Subscribed, listener: Listener): void {
    if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    this.channels.delete(channel.name);
    if (this.channels.size > 0) {
      if (channel.open && this.line !== undefined) quietly(this.line.unsubscribe(channel.name));
      return;
    }
    this.pause?.cancel();
    this.pause = undefined;
    this.opening?.giveUp();
    this.opening = undefined;
    const { line } = this;
    this.line = undefined;
    if (line !== undefined) quietly(line.close());
  }

  private mendLater(): void {
    if (this.pause !== undefined || this.channels.size === 0) return;
    const pauseMs =
      this.failures === 0 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - 1));
    const mend = (): void => {
      this.pause = undefined;
      void this.mend();
    };
    this.pause = systemClock.setTimer(mend, pauseMs, { ref: false });
  }

  /** Makes all channels heard again whose listeners were told that messages may be lost. */
  private async mend(): Promise<void> {
    const lost = [...this.channels.values()].filter(isLost);
    const mended = await Promise.allSettled(lost.map((channel) => this.mendOne(channel)));
    if (mended.every(({ status }) => status === 'fulfilled')) return;
    this.failures += 1;
    this.mendLater();
  }

  private async mendOne(channel: Subscribed): Promise<void> {
    await this.heard(channel);
    for (const listener of channel.listeners) {
      if (!listener.lost) continue;
      listener.lost = false;
      listener.onState(true);
    }
  }
}

function isLost({ listeners }: Subscribed): boolean {
  return [...listeners].some(({ lost }) => lost);
}

function nowMs(): number {
  return systemClock.now().monoMs;
}

/** Nobody waits for it, and it does not matter how it ends. */
function quietly(done: Promise<unknown>): void {
  done.catch(() => undefined);
}

/** What is open after it was given up is closed. */
function unlessAborted(opened: Promise<Line>, signal: AbortSignal): Promise<Line> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      reject(new Error('the connection was not open in time'));
      quietly(opened.then((line) => line.close()));
    };
    signal.addEventListener('abort', giveUp, { once: true });
    opened.finally(() => signal.removeEventListener('abort', giveUp)).then(resolve, reject);
  });
}
