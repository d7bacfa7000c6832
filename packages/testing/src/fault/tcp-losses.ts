/**
 * Messages that a proxy is to lose: counted over all its connections, for a test knows which request it means and not
 * which connection carries it. A loss always comes to an outcome, so that nobody waits for one that never will be.
 */
import { checkCallback, requireOneOf, requireOptions, requireWhole } from '../argument.js';
import type { CallerCode } from './caller-code.js';
import type { LossOutcome, TcpConnection } from './tcp-connection.js';

/** Which message is to be lost. */
export interface LossOptions {
  /** Counted from now over all connections. Default 1: the next. */
  readonly nth?: number;
  /**
   * Which requests count. A request is what arrives of a client at once. Default: all. Where it throws, or answers
   * neither true nor false, the loss is given up and `failure` of the proxy says why.
   */
  readonly matches?: (request: Buffer) => boolean;
  /**
   * What the client sees: nothing for ever (`hang`), or a reset connection (`reset`), for a reply in the moment in
   * which it would have arrived. Default `hang`.
   */
  readonly then?: 'hang' | 'reset';
}

/** A loss that is awaited. */
export interface AwaitedLoss {
  /** Resolves when it has happened, or when it is clear that it never will; never rejects. */
  readonly happened: Promise<LossOutcome>;
  /** Gives it up, if its request has not come yet. */
  cancel(): void;
}

interface Loss {
  readonly what: 'request' | 'reply';
  readonly matches: (request: Buffer) => boolean;
  readonly then: 'hang' | 'reset';
  readonly settle: (outcome: LossOutcome) => void;
  left: number;
}

/** The losses of one proxy that have not met their request yet. */
export class TcpLosses {
  #losses: Loss[] = [];
  #closed = false;
  readonly #callers: CallerCode;

  constructor(callers: CallerCode) {
    this.#callers = callers;
  }

  add(what: Loss['what'], options: LossOptions): AwaitedLoss {
    requireOptions('options', options, ['nth', 'matches', 'then']);
    const { nth = 1, matches = () => true, then = 'hang' } = options;
    requireWhole('options.nth', nth, 1);
    checkCallback('options.matches', matches);
    requireOneOf('options.then', then, ['hang', 'reset']);
    let settle!: Loss['settle'];
    const happened = new Promise<LossOutcome>((resolve) => (settle = resolve));
    const loss: Loss = { what, matches, then, left: nth, settle };
    if (this.#closed) settle('given-up');
    else this.#losses.push(loss);
    return { happened, cancel: () => this.#cancel(loss) };
  }

  /** Gives all of them up. */
  giveUp(): void {
    for (const loss of this.#losses.splice(0)) loss.settle('given-up');
  }

  /** Gives all of them up, and those that somebody still asks for. */
  close(): void {
    this.#closed = true;
    this.giveUp();
  }

  /** Counts a request; where it is the one that is meant, its connection loses from now on. */
  meet(connection: TcpConnection, request: Buffer): void {
    for (const loss of this.#losses) {
      const isMeant = this.#callers.ask(
        'options.matches',
        () => loss.matches(request),
        isFlag,
        'true or false',
      );
      if (isMeant === undefined) this.#cancel(loss);
      if (isMeant !== true) continue;
      loss.left -= 1;
      if (loss.left > 0) continue;
      this.#losses = this.#losses.filter((other) => other !== loss);
      connection.lose({
        direction: loss.what === 'reply' ? 'to-client' : 'to-server',
        reset: loss.then === 'reset',
        settle: loss.settle,
      });
    }
  }

  #cancel(loss: Loss): void {
    if (!this.#losses.includes(loss)) return;
    this.#losses = this.#losses.filter((other) => other !== loss);
    loss.settle('given-up');
  }
}

function isFlag(answer: unknown): answer is boolean {
  return typeof answer === 'boolean';
}
