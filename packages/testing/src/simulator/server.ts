/**
 * The one backend of a simulation: locks and state in memory, on clocks of their own, with the books beside them.
 * Everything that reaches it is booked in the order in which it is carried out. It can start anew (streams end,
 * tickets may be gone) and lose its data.
 */
import type {
  AtOnce,
  Claim,
  ClaimAnswer,
  LockBackend,
  LockInfo,
  LockQuery,
  Notice,
  StateStore,
  Subscription,
} from '@guard/core';
import type { Calls } from './laws/calls.js';
import type { Entries } from './laws/entries.js';
import { Grants, show, type Executed } from './laws/grants.js';
import { NodeClock } from './node-clock.js';
import { between } from './chance.js';
import type { SimulatedCore, Stage } from './stage.js';
import { STATE_PREFIX } from './workload.js';

interface Stream {
  readonly session: string;
  readonly onNotice: (notice: Notice) => void;
  inner: Subscription;
}

/** The backend of one simulation. */
export class Server {
  readonly grants: Grants;
  readonly clock: NodeClock;
  /** What connections lead to. */
  readonly locks: LockBackend;
  readonly state: StateStore;
  #inner: LockBackend;
  readonly #streams = new Set<Stream>();
  /** Tickets by claim id, as far as answers told of them. */
  readonly #tickets = new Map<string, Claim>();
  #lastBooked: Promise<void> = Promise.resolve();

  constructor(
    private readonly stage: Stage,
    private readonly core: SimulatedCore,
    private readonly calls: Calls,
    private readonly entries: Entries,
  ) {
    const { random, plan, world } = stage;
    const rate = plan.faults.has('drift') ? between(random, 0.995, 1.005) : 1;
    this.clock = new NodeClock(world, { rate, monoMs: 50_000, wallOffsetMs: between(random, -500, 500) });
    this.grants = new Grants(stage, () => this.clock.now().monoMs);
    this.#inner = core.memoryLocks({ clock: this.clock });
    this.locks = this.#bookedLocks();
    this.state = this.#bookedState(core.memoryState({ clock: this.clock }));
  }

  /** Streams end without a word; tickets may be gone. */
  async restart(losesTickets: boolean): Promise<void> {
    this.stage.journal.note(`the backend starts anew${losesTickets ? ', without tickets' : ''}`);
    await this.#dropStreams();
    if (!losesTickets) return;
    for (const { id, key, session } of [...this.#tickets.values()]) {
      const info = await this.#infoOf(key);
      this.#tickets.delete(id);
      if (info.lease?.claim === id) continue;
      await this.#inner.release([{ cancel: true, claim: id, key, session, tombstoneMs: 0 }]);
    }
  }

  /** Every lock, ticket, tombstone and the counter are gone. */
  async loseData(): Promise<void> {
    this.stage.journal.note('the backend loses its data');
    this.grants.forget();
    this.#tickets.clear();
    this.#inner = this.core.memoryLocks({ clock: this.clock });
    for (const stream of this.#streams)
      stream.inner = await this.#inner.subscribe!(stream.session, stream.onNotice);
  }

  /** Settles when everything is booked that was answered at once. */
  booked(): Promise<void> {
    return this.#lastBooked;
  }

  /** What the backend says, without a book entry. */
  inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    return this.#inner.inspect(query);
  }

  #bookedLocks(): LockBackend {
    const { name, traits } = this.#inner;
    return {
      name,
      traits,
      acquire: async (claims) => {
        const answers = await this.#inner.acquire(claims);
        for (const [index, op] of claims.entries()) {
          const answer = answers[index]!;
          this.#keepTicket(op, answer);
          await this.#book({ verb: 'acquire', op, answer });
        }
        return answers;
      },
      renew: async (renewals) => {
        const answers = await this.#inner.renew(renewals);
        for (const [index, op] of renewals.entries())
          await this.#book({ verb: 'renew', op, answer: answers[index]! });
        return answers;
      },
      release: async (releases) => {
        const answers = await this.#inner.release(releases);
        for (const [index, op] of releases.entries()) {
          if (op.cancel) this.#tickets.delete(op.claim);
          await this.#book({ verb: 'release', op, answer: answers[index]! });
        }
        return answers;
      },
      inspect: (query) => this.#inner.inspect(query),
      subscribe: (session, onNotice) => this.#subscribe(session, onNotice),
      atOnce: () => this.#bookedAtOnce(),
      close: () => Promise.resolve(),
    };
  }

  /** The book asks the backend in the same step, and enters what it hears when that step is over. */
  #bookedAtOnce(): AtOnce {
    return {
      acquire: (op) => {
        const answer = this.#inner.atOnce!().acquire(op);
        if (answer === undefined) return undefined;
        this.#keepTicket(op, answer);
        this.#lastBooked = this.#book({ verb: 'acquire', op, answer }, ' at once');
        return answer;
      },
      release: (op) => {
        const answer = this.#inner.atOnce!().release(op);
        if (answer !== undefined) this.#lastBooked = this.#book({ verb: 'release', op, answer }, ' at once');
        return answer;
      },
    };
  }

  #keepTicket(op: Claim, { status }: ClaimAnswer): void {
    if (status === 'queued') this.#tickets.set(op.id, op);
    else this.#tickets.delete(op.id);
  }

  async #subscribe(session: string, onNotice: (notice: Notice) => void): Promise<Subscription> {
    const stream: Stream = { session, onNotice, inner: await this.#inner.subscribe!(session, onNotice) };
    this.#streams.add(stream);
    return {
      close: () => {
        this.#streams.delete(stream);
        return stream.inner.close();
      },
    };
  }

  async #dropStreams(): Promise<void> {
    for (const stream of this.#streams) {
      await stream.inner.close();
      stream.inner = { close: () => Promise.resolve() };
    }
  }

  /** The connections' streams are open again. */
  async reconnect(): Promise<void> {
    await this.#dropStreams();
    for (const stream of this.#streams)
      stream.inner = await this.#inner.subscribe!(stream.session, stream.onNotice);
  }

  async #book(done: Executed, how = ''): Promise<void> {
    const info = await this.#infoOf(done.op.key);
    const { journal } = this.stage;
    journal.note(`backend: ${show(done)}`);
    journal.count(`${done.verb} ${done.answer.status}`);
    const holder = this.grants.executed(done, info);
    if (holder === undefined) return;
    const handedOver = done.verb !== 'acquire' || done.op.id !== holder;
    journal.note(
      `backend: ${info.key} is ${handedOver ? 'handed to' : 'granted to'} ${holder} #${info.token}`,
    );
    if (handedOver) journal.count(`hand-over${how}`);
    this.calls.becameHolder(holder);
  }

  async #infoOf(key: string): Promise<LockInfo> {
    return (await this.#inner.inspect({ keys: [key] }))[0]!;
  }

  #bookedState(inner: StateStore): StateStore {
    return {
      name: inner.name,
      traits: inner.traits,
      ...(inner.partition !== undefined && { partition: (key: string) => inner.partition!(key) }),
      now: () => inner.now(),
      read: (keys) => inner.read(keys),
      write: async (writes) => {
        const answers = await inner.write(writes);
        for (const [index, write] of writes.entries()) {
          const answer = answers[index]!;
          this.entries.executed(write, answer);
          if (write.key.startsWith(STATE_PREFIX))
            this.stage.journal.note(`store: ${write.key} ${write.value}: ${answer.status}`);
          this.stage.journal.count(`write ${answer.status}`);
        }
        return answers;
      },
      scan: (prefix, cursor, limit) => inner.scan(prefix, cursor, limit),
      watch: (prefix, listener) => inner.watch(prefix, listener),
      close: () => Promise.resolve(),
    };
  }
}
