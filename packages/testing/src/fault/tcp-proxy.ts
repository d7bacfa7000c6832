/**
 * A TCP proxy that does to a connection what networks do, and nothing that a network cannot: bytes may be late, or
 * never come again, but none is missing in the middle. So a lost reply is the end of its connection, and a cut wire
 * delivers after it has healed what was sent meanwhile.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { systemClock, type Clock } from '@guard/core';
import type { Delay } from './fault.js';
import { TcpConnection, type Direction, type TcpAddress } from './tcp-connection.js';
import type { Verdict, Wire } from './tcp-pipe.js';

/** How a proxy is set up. */
export interface TcpProxyOptions {
  /** Where connections lead. */
  readonly target: TcpAddress;
  /** Port on the loopback address. Default: a free one. */
  readonly port?: number;
  /** Default: the system's. */
  readonly clock?: Clock;
}

/** Which message is to be lost. */
export interface LossOptions {
  /** Counted from now over all connections. Default 1: the next. */
  readonly nth?: number;
  /** Which requests count. A request is what arrives of a client at once. Default: all. */
  readonly matches?: (request: Buffer) => boolean;
  /**
   * What the client sees: nothing for ever (`hang`), or a reset connection (`reset`), for a reply in the moment in
   * which it would have arrived. Default `hang`.
   */
  readonly then?: 'hang' | 'reset';
}

/** A loss that is awaited. */
export interface AwaitedLoss {
  /** Resolves when it has happened. */
  readonly happened: Promise<void>;
  /** Gives it up. */
  cancel(): void;
}

interface Loss {
  readonly what: 'request' | 'reply';
  readonly matches: (request: Buffer) => boolean;
  readonly then: 'hang' | 'reset';
  readonly happened: () => void;
  left: number;
}

const BOTH: readonly Direction[] = ['to-server', 'to-client'];

/** Starts a proxy. */
export async function startTcpProxy(options: TcpProxyOptions): Promise<TcpProxy> {
  const proxy = new TcpProxy(options);
  await proxy.listen(options.port ?? 0);
  return proxy;
}

/** A running proxy. Faults act on the connections that are open and on new ones; a direction left out means both. */
export class TcpProxy implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #connections = new Set<TcpConnection>();
  readonly #wires: Record<Direction, Wire> = { 'to-server': wire(), 'to-client': wire() };
  #target: TcpAddress;
  #refusing = false;
  #losses: Loss[] = [];
  #resetAfter: { left: number; readonly direction: Direction } | undefined;
  #accepted = 0;

  /** Use `startTcpProxy`. */
  constructor({ target, clock = systemClock }: TcpProxyOptions) {
    this.#target = target;
    this.#clock = clock;
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) =>
      this.#accept(client),
    );
  }

  /** Begins to accept connections. */
  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, this.host, () => resolve());
    });
  }

  /** The port it listens on. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Connections that are open now, and those accepted since the start. */
  get connections(): { readonly open: number; readonly accepted: number } {
    return { open: this.#connections.size, accepted: this.#accepted };
  }

  /** Lets nothing pass and says nothing: no reset, no end, and new connections get no answer either. */
  cut(direction?: Direction): void {
    this.#change(direction, { cut: true });
  }

  /** Lets every byte take this long, or as long as the function draws for it. Their order stays. */
  delay(delay: Delay, direction?: Direction): void {
    this.#change(direction, { delay });
  }

  /** Lets at most so many bytes pass in a second. */
  throttle(bytesPerSecond: number, direction?: Direction): void {
    this.#change(direction, { bytesPerSecond });
  }

  /** Resets every open connection (RST on both sides). New ones are served. */
  reset(): void {
    for (const connection of [...this.#connections]) connection.reset();
  }

  /** Resets the connection that carries the n-th byte from now in this direction, after that byte. */
  resetAfter(bytes: number, direction: Direction): void {
    this.#resetAfter = { left: bytes, direction };
  }

  /** Resets every open connection and each new one, as a machine does on which nobody listens. */
  refuse(): void {
    this.#refusing = true;
    this.reset();
  }

  /** Ends one direction of every open connection (FIN); the other one goes on. */
  halfClose(direction: Direction): void {
    for (const connection of [...this.#connections]) connection.halfClose(direction);
  }

  /** The server gets a request and carries it out; its reply never arrives. */
  loseReply(options: LossOptions = {}): AwaitedLoss {
    return this.#lose('reply', options);
  }

  /** The server never gets a request. */
  loseRequest(options: LossOptions = {}): AwaitedLoss {
    return this.#lose('request', options);
  }

  /** Leads new connections to another server. */
  redirect(target: TcpAddress): void {
    this.#target = target;
  }

  /** Ends every fault. Connections that lost bytes are reset, for they can never be whole again. */
  heal(): void {
    this.#refusing = false;
    this.#losses = [];
    this.#resetAfter = undefined;
    for (const connection of [...this.#connections]) if (connection.losing) connection.reset();
    this.#change(undefined, wire());
    for (const connection of [...this.#connections]) connection.connect(this.#target);
  }

  /** Resets what is open, and ends. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.reset();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #change(direction: Direction | undefined, change: Partial<Wire>): void {
    for (const each of direction === undefined ? BOTH : [direction]) Object.assign(this.#wires[each], change);
    for (const connection of this.#connections) connection.update();
  }

  #accept(client: Socket): void {
    this.#accepted += 1;
    const connection = new TcpConnection(
      client,
      {
        wires: this.#wires,
        clock: this.#clock,
        look: (each, direction, chunk) => this.#look(each, direction, chunk),
      },
      () => this.#connections.delete(connection),
    );
    this.#connections.add(connection);
    if (this.#refusing) connection.reset();
    // What a client sends to open a connection does not arrive on a cut wire either.
    else if (!BOTH.some((direction) => this.#wires[direction].cut)) connection.connect(this.#target);
  }

  #lose(what: Loss['what'], { nth = 1, matches = () => true, then = 'hang' }: LossOptions): AwaitedLoss {
    let loss: Loss | undefined;
    const happened = new Promise<void>((resolve) => {
      loss = { what, matches, then, left: nth, happened: resolve };
      this.#losses.push(loss);
    });
    return { happened, cancel: () => (this.#losses = this.#losses.filter((other) => other !== loss)) };
  }

  #look(connection: TcpConnection, direction: Direction, chunk: Buffer | 'end'): Verdict {
    if (direction === 'to-server' && chunk !== 'end') this.#countRequest(connection, chunk);
    const { losing } = connection;
    if (losing?.direction === direction) {
      if (losing.reset) connection.reset();
      losing.happened();
      return 'drop';
    }
    return chunk === 'end' ? 'pass' : this.#countBytes(direction, chunk);
  }

  #countRequest(connection: TcpConnection, request: Buffer): void {
    for (const loss of this.#losses) {
      if (!loss.matches(request)) continue;
      loss.left -= 1;
      if (loss.left > 0) continue;
      this.#losses = this.#losses.filter((other) => other !== loss);
      connection.losing ??= {
        direction: loss.what === 'reply' ? 'to-client' : 'to-server',
        reset: loss.then === 'reset',
        happened: loss.happened,
      };
    }
  }

  #countBytes(direction: Direction, chunk: Buffer): Verdict {
    const limit = this.#resetAfter;
    if (limit?.direction !== direction) return 'pass';
    if (chunk.length < limit.left) {
      limit.left -= chunk.length;
      return 'pass';
    }
    this.#resetAfter = undefined;
    return { resetAfter: limit.left };
  }
}

function wire(): Wire {
  return { cut: false, delay: 0, bytesPerSecond: Infinity };
}
