/**
 * A TCP proxy that does to a connection what networks do, and nothing that a network cannot: bytes may be late, or
 * never come again, but none is missing in the middle. So a lost reply is the end of its connection, and a cut wire
 * delivers after it has healed what was sent meanwhile.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { GuardError, invalidArgument, systemClock, type Clock } from '@guard/core';
import { checkClock, requireNumber, requireOneOf, requireOptions, requireWhole } from '../argument.js';
import { CallerCode } from './caller-code.js';
import type { Delay } from './fault-kinds.js';
import { TcpConnection, type Direction, type TcpAddress } from './tcp-connection.js';
import { TcpLosses, type AwaitedLoss, type LossOptions } from './tcp-losses.js';
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

const MAX_PORT = 65_535;
const BOTH: readonly Direction[] = ['to-server', 'to-client'];

/**
 * Starts a proxy.
 *
 * @throws GuardError `invalid-argument`, as all calls of a proxy do that get what they do not know. `unavailable`: the
 * port is taken.
 */
export async function startTcpProxy(options: TcpProxyOptions): Promise<TcpProxy> {
  requireOptions('options', options, ['target', 'port', 'clock']);
  requireTarget('options.target', options.target);
  if (options.port !== undefined) requireWhole('options.port', options.port, 0, MAX_PORT);
  checkClock('options.clock', options.clock);
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
  readonly #callers = new CallerCode();
  readonly #losses = new TcpLosses(this.#callers);
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
      this.#server.once('error', (cause) =>
        reject(new GuardError('unavailable', `no proxy on port ${port}: ${cause.message}`, { cause })),
      );
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

  /**
   * What a function that was handed in (`matches`, a drawn `delay`) threw, or answered amiss; the first of several.
   * `close` rejects with it, so that a test which looks nowhere else fails too.
   */
  get failure(): GuardError | undefined {
    return this.#callers.failure;
  }

  /**
   * Lets nothing pass and says nothing: no reset, no end, and new connections get no answer either. What the other side
   * did meanwhile is heard of when it heals.
   */
  cut(direction?: Direction): void {
    this.#change(direction, { cut: true });
  }

  /**
   * Lets every byte take this long, in milliseconds, or as long as the function draws for it. Their order stays. What is
   * under way already keeps its time; with 0 it arrives at once. A draw that throws, or that is no time, counts as 0, and
   * `failure` says so.
   */
  delay(delay: Delay, direction?: Direction): void {
    if (typeof delay !== 'function') requireNumber('delay', delay, 0);
    const what = 'a finite number of at least 0';
    const drawn = (): number => this.#callers.ask('delay', delay as () => number, isTime, what) ?? 0;
    this.#change(direction, { delay: typeof delay === 'function' ? drawn : delay });
  }

  /** Lets at most so many bytes pass in a second, in small pieces. 0: none; `Infinity`: as many as come. */
  throttle(bytesPerSecond: number, direction?: Direction): void {
    if (bytesPerSecond !== Infinity) requireNumber('bytesPerSecond', bytesPerSecond, 0);
    this.#change(direction, { bytesPerSecond });
  }

  /** Resets every open connection (RST on both sides). New ones are served. */
  reset(): void {
    for (const connection of [...this.#connections]) connection.reset();
  }

  /**
   * Resets the connection that carries the n-th byte from now in this direction, after that byte: its receiver has a
   * moment to read it, then comes the reset (RST), on both sides.
   */
  resetAfter(bytes: number, direction: Direction): void {
    requireWhole('bytes', bytes, 1);
    requireOneOf('direction', direction, BOTH);
    this.#resetAfter = { left: bytes, direction };
  }

  /** Resets every open connection and each new one, as a machine does on which nobody listens. */
  refuse(): void {
    this.#refusing = true;
    this.reset();
  }

  /**
   * Ends one direction of every open connection (FIN), as if its sender had; the other one goes on. The end travels as
   * bytes do, behind those under way. What the sender sends from now on is dropped, and on a cut wire also what it sent
   * since the cut.
   */
  halfClose(direction: Direction): void {
    requireOneOf('direction', direction, BOTH);
    for (const connection of [...this.#connections]) connection.halfClose(direction);
  }

  /** The server gets a request and carries it out; its reply never arrives. */
  loseReply(options: LossOptions = {}): AwaitedLoss {
    return this.#losses.add('reply', options);
  }

  /** The server never gets a request. */
  loseRequest(options: LossOptions = {}): AwaitedLoss {
    return this.#losses.add('request', options);
  }

  /** Leads new connections to another server. */
  redirect(target: TcpAddress): void {
    requireTarget('target', target);
    this.#target = target;
  }

  /**
   * Ends every fault: what was late or held back arrives at once, in its order; losses that have not happened are given
   * up. Connections that lost bytes are reset, for they can never be whole again.
   */
  heal(): void {
    this.#refusing = false;
    this.#losses.giveUp();
    this.#resetAfter = undefined;
    for (const connection of [...this.#connections]) if (connection.losing) connection.reset();
    this.#change(undefined, wire());
    for (const connection of [...this.#connections]) connection.connect(this.#target);
  }

  /**
   * Resets what is open, and ends.
   *
   * @throws GuardError `invalid-argument`: what `failure` says. It has ended all the same.
   */
  async close(): Promise<void> {
    this.#losses.close();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.reset();
    await closed;
    if (this.failure !== undefined) throw this.failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #change(direction: Direction | undefined, change: Partial<Wire>): void {
    if (direction !== undefined) requireOneOf('direction', direction, BOTH);
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

  #look(connection: TcpConnection, direction: Direction, chunk: Buffer | 'end'): Verdict {
    if (direction === 'to-server' && chunk !== 'end') this.#losses.meet(connection, chunk);
    const { losing } = connection;
    if (losing?.direction === direction) {
      losing.settle('lost');
      if (losing.reset) connection.reset();
      return 'drop';
    }
    return chunk === 'end' ? 'pass' : this.#countBytes(direction, chunk);
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

function isTime(answer: unknown): answer is number {
  return typeof answer === 'number' && Number.isFinite(answer) && answer >= 0;
}

function requireTarget(argument: string, target: unknown): void {
  // Whatever has an address will do: a running server has more than that.
  if (typeof target !== 'object' || target === null)
    throw invalidArgument(argument, target, 'must be an address');
  const { host, port } = target as TcpAddress;
  if (typeof host !== 'string' || host === '')
    throw invalidArgument(`${argument}.host`, host, 'must be a name');
  requireWhole(`${argument}.port`, port, 1, MAX_PORT);
}
