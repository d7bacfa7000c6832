/** One connection through the proxy: two pipes, and what happens to both at once. */
import { connect, type Socket } from 'node:net';
import { systemClock, type Clock } from '@guard/core';
import { TcpPipe, type Verdict, type Wire } from './tcp-pipe.js';

/**
 * How long a receiver has to read its last bytes before the reset comes. Where both arrive at once, libuv reports the
 * end of the stream and no reset. Real time, as the reader's is.
 */
const READ_WITHIN_MS = 50;

/** Which way bytes go. */
export type Direction = 'to-server' | 'to-client';

/** Where a connection leads. */
export interface TcpAddress {
  readonly host: string;
  readonly port: number;
}

/** What a connection needs of its proxy. */
export interface ConnectionRules {
  readonly wires: Readonly<Record<Direction, Wire>>;
  readonly clock: Clock;
  /** Sees every chunk before it is sent on. */
  readonly look: (connection: TcpConnection, direction: Direction, chunk: Buffer | 'end') => Verdict;
}

/** Everything that goes this way is lost. */
export interface Losing {
  readonly direction: Direction;
  /** Whether the connection is reset when the first of it arrives. */
  readonly reset: boolean;
  readonly settle: (outcome: LossOutcome) => void;
}

/**
 * What became of an awaited loss: it happened, or it never will, for `cancel`, `heal`, `close` or the end of the
 * connection came first.
 */
export type LossOutcome = 'lost' | 'given-up';

/** One connection. */
export class TcpConnection {
  #losing: Losing | undefined;
  readonly #client: Socket;
  readonly #rules: ConnectionRules;
  readonly #onClose: () => void;
  #server: Socket | undefined;
  #pipes: Record<Direction, TcpPipe> | undefined;
  /** Directions that were ended before there was a way to the server. */
  readonly #ended = new Set<Direction>();

  constructor(client: Socket, rules: ConnectionRules, onClose: () => void) {
    this.#client = client;
    this.#rules = rules;
    this.#onClose = onClose;
    client.setNoDelay(true);
    client.on('error', () => this.#wasReset(client));
    client.on('close', () => this.#sideClosed(client));
  }

  /** Connects to the server; a connection on a cut wire does that only when it heals. */
  connect({ host, port }: TcpAddress): void {
    if (this.#server !== undefined || this.#client.destroyed) return;
    const server = connect({ host, port, allowHalfOpen: true, noDelay: true });
    this.#server = server;
    server.on('error', () => this.#wasReset(server));
    server.on('close', () => this.#sideClosed(server));
    this.#pipes = {
      'to-server': this.#pipe(this.#client, server, 'to-server'),
      'to-client': this.#pipe(server, this.#client, 'to-client'),
    };
    for (const direction of this.#ended) this.#pipes[direction].end();
  }

  /** What is lost of it. It can never be whole again. */
  get losing(): Losing | undefined {
    return this.#losing;
  }

  /** Loses everything in one direction from now on; one that loses already cannot lose twice. */
  lose(losing: Losing): void {
    if (this.#losing === undefined) this.#losing = losing;
    else losing.settle('given-up');
  }

  /** Follows a change of the wires. */
  update(): void {
    for (const pipe of Object.values(this.#pipes ?? {})) pipe.update();
  }

  /** Ends one direction: its receiver sees the end of the stream, the other direction goes on. */
  halfClose(direction: Direction): void {
    if (this.#pipes === undefined) this.#ended.add(direction);
    else this.#pipes[direction].end();
  }

  /** Resets both sides (RST). */
  reset(): void {
    this.#stop();
    this.#losing?.settle('given-up');
    this.#client.resetAndDestroy();
    this.#server?.resetAndDestroy();
  }

  /** A side reset the connection. The other one hears of it when the wire lets it through. */
  #wasReset(side: Socket): void {
    if (this.#pipes === undefined || this.#losing !== undefined) this.reset();
    else this.#pipes[side === this.#client ? 'to-server' : 'to-client'].resetBySender();
  }

  #stop(): void {
    for (const pipe of Object.values(this.#pipes ?? {})) pipe.close();
  }

  #pipe(from: Socket, to: Socket, direction: Direction): TcpPipe {
    const { wires, clock, look } = this.#rules;
    return new TcpPipe(from, to, {
      wire: wires[direction],
      clock,
      look: (chunk) => look(this, direction, chunk),
      reset: () => {
        this.#stop();
        systemClock.setTimer(() => this.reset(), READ_WITHIN_MS, { ref: false });
      },
      senderReset: () => this.reset(),
    });
  }

  #sideClosed(side: Socket): void {
    const other = side === this.#client ? this.#server : this.#client;
    // A side that closed without an end of its stream was destroyed: so is the other one.
    if (other !== undefined && !side.readableEnded) this.#wasReset(side);
    if (!this.#client.destroyed || !(this.#server?.destroyed ?? true)) return;
    this.#losing?.settle('given-up');
    this.#onClose();
  }
}
