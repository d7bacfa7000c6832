/**
 * The one stream on which the leases of a process are kept alive. It sends when it is told to, and by no clock of its
 * own. A stream can look open while nobody is at its other end, so one that owes an answer for too long is closed, and
 * the next sending opens another one, to another member where there are several.
 */
import type { Clock } from '@guard/core';
import type { ILeaseKeepAliveResponse } from 'etcd3';
import type { BeatStream, EtcdConnection } from './connection.js';
import { letProcessEnd } from './idle-stream.js';

/** One keep-alive that was answered. */
export interface Beat {
  /** What the lease has from now on; 0: it is over. */
  readonly ttlMs: number;
  /** The term of the leader that answered, as the member says. */
  readonly term: string;
}

interface Awaited {
  readonly resolve: (response: ILeaseKeepAliveResponse) => void;
  readonly reject: (cause: Error) => void;
}

/** How often one keep-alive is sent, each time on a new stream. */
const MAX_SENDINGS = 3;

/** The keep-alive stream of one adapter. */
export class KeepAlive {
  private opening: Promise<BeatStream> | undefined;
  /** By lease, in the order in which they were sent. */
  private readonly awaited = new Map<string, Awaited[]>();
  private closed = false;

  constructor(
    private readonly connection: EtcdConnection,
    private readonly clock: Clock,
    private readonly onSilence: () => void,
  ) {}

  /** Sends a keep-alive, and again on a new stream where the answer does not come within `silenceMs`. */
  async beat(lease: string, silenceMs: number): Promise<Beat> {
    for (let sending = 1; ; sending += 1) {
      try {
        const { TTL, header } = await this.send(lease, silenceMs);
        return { ttlMs: Number(TTL) * 1_000, term: header.raft_term };
      } catch (cause) {
        if (sending === MAX_SENDINGS || this.closed) throw cause;
      }
    }
  }

  close(): void {
    this.closed = true;
    const { opening } = this;
    this.drop(opening, new Error('the adapter was closed'));
    // A connection without a network would never finish an orderly end, and keep the process alive for it (L5).
    void opening?.then((stream) => stream.cancel()).catch(() => undefined);
  }

  private async send(lease: string, silenceMs: number): Promise<ILeaseKeepAliveResponse> {
    if (this.closed) throw new Error('the adapter was closed');
    const opening = (this.opening ??= this.open());
    let silent: () => void = () => undefined;
    const silence = new Promise<never>((_resolve, reject) => {
      silent = () => reject(new Error(`etcd did not answer a keep-alive within ${Math.round(silenceMs)} ms`));
    });
    const timer = this.clock.setTimer(() => silent(), silenceMs);
    try {
      return await Promise.race([this.sendOn(opening, lease), silence]);
    } catch (cause) {
      if (this.opening === opening) this.replace(opening, cause as Error);
      throw cause;
    } finally {
      timer.cancel();
    }
  }

  private async sendOn(opening: Promise<BeatStream>, lease: string): Promise<ILeaseKeepAliveResponse> {
    const stream = await opening;
    return new Promise((resolve, reject) => {
      const line = this.awaited.get(lease) ?? [];
      this.awaited.set(lease, line);
      line.push({ resolve, reject });
      stream.write({ ID: lease });
    });
  }

  private open(): Promise<BeatStream> {
    const opening = this.connection.beats().then((stream) => {
      stream.on('data', (response) => {
        // A keep-alive that is on its way has a timer; an open stream does not keep the process alive (L5).
        letProcessEnd(stream);
        if (this.opening === opening) this.answered(response);
      });
      const over = (error?: Error): void =>
        this.drop(opening, error ?? new Error('the stream of keep-alives ended'));
      stream.on('error', over);
      stream.on('end', () => over());
      return stream;
    });
    opening.catch((cause: unknown) => this.drop(opening, cause as Error));
    return opening;
  }

  private answered(response: ILeaseKeepAliveResponse): void {
    const line = this.awaited.get(response.ID);
    line?.shift()?.resolve(response);
    if (line?.length === 0) this.awaited.delete(response.ID);
  }

  /** Leaves a stream that is silent. */
  private replace(opening: Promise<BeatStream>, cause: Error): void {
    this.drop(opening, cause);
    // Cancelling it tells the client that this member is not well.
    void opening.then((stream) => stream.cancel()).catch(() => undefined);
    this.onSilence();
  }

  private drop(opening: Promise<BeatStream> | undefined, cause: Error): void {
    if (this.opening !== opening) return;
    this.opening = undefined;
    const lines = [...this.awaited.values()];
    this.awaited.clear();
    for (const line of lines) for (const { reject } of line) reject(cause);
  }
}
