/**
 * The connection of one process to the backend. Each request draws its fate: how long it takes, and whether it is
 * lost, rejected, carried out twice or late. What the guard behind it hears is told to the books in the same turn.
 */
import type {
  AtOnce,
  Claim,
  ClaimAnswer,
  Failed,
  Instant,
  LockBackend,
  Notice,
  Release,
  Renewal,
  RenewAnswer,
  StateStore,
  Subscription,
} from '@guard/core';
import type { FaultPlan } from '../fault/fault.js';
import { faultyBackend, type FaultyBackend, type LockVerb } from '../fault/faulty-backend.js';
import { faultyState, type FaultyState, type StateVerb } from '../fault/faulty-state.js';
import { drawFault, drawNotice, drawWay } from './fates.js';
import type { Beliefs } from './laws/beliefs.js';
import type { Calls } from './laws/calls.js';
import { Flights } from './laws/flights.js';
import type { SimNode } from './node.js';
import type { Server } from './server.js';
import { chance } from './chance.js';
import type { Stage } from './stage.js';

/** A request that a fault may delay is in the way for so many of the plan's leases. */
const FAULT_TTLS = 8;
const LONGEST_FLIGHT_MS = 5_000;

/** The share of operations that a process beside the backend sends over the network nevertheless. */
const FAR_SHARE = 0.3;

/** What somebody wants to know of a process beside the backend. */
export interface NearProcess {
  /** It was answered at once: between this and its next step anything may happen to it. */
  readonly answered: () => void;
}

/** One process's connection. A process beside the backend has a short way as well, and takes now this, now that. */
export class Link {
  readonly locks: LockBackend;
  readonly store: StateStore;
  /** The share of requests and notices that meets a fault. */
  faultRate = 0;
  readonly #backend: FaultyBackend;
  readonly #state: FaultyState;
  readonly #claims = new Map<string, Claim>();
  readonly #flights: Flights;
  #violations = 0;
  #troubles = 0;

  constructor(
    private readonly stage: Stage,
    private readonly node: SimNode,
    server: Server,
    private readonly calls: Calls,
    private readonly beliefs: Beliefs,
    near?: NearProcess,
  ) {
    const { clock } = stage.world;
    const atOnce = near !== undefined;
    this.#backend = faultyBackend(this.#withFaultyNotices(server.locks), { clock, atOnce });
    this.#state = faultyState(server.state, { clock });
    this.#flights = new Flights(stage, node);
    const { backend } = this.#backend;
    this.locks = this.#watchedLocks(backend);
    if (near !== undefined) this.locks.atOnce = () => this.#shortCut(backend.atOnce!(), near);
    this.store = this.#gatedStore(this.#state.store);
  }

  /** Nothing comes through (`cut`), or everything is rejected (`down`), for `ms`. */
  trouble(kind: 'cut' | 'down', ms: number): void {
    // What was sent meanwhile hangs for as long as a request may fly.
    this.node.disturb(ms + LONGEST_FLIGHT_MS);
    this.#backend[kind]();
    this.#state[kind]();
    this.#troubles += 1;
    this.stage.world.after(ms, () => {
      this.#troubles -= 1;
      if (this.#troubles === 0) this.#clear();
    });
  }

  /** Ends every fault. */
  heal(): void {
    this.faultRate = 0;
    this.#clear();
  }

  #clear(): void {
    this.#backend.heal();
    this.#state.heal();
  }

  #watchedLocks(backend: LockBackend): LockBackend {
    const { plan } = this.#backend;
    const send = <A>(verb: LockVerb, call: () => Promise<A>, heard?: (answer: A) => void): Promise<A> =>
      this.#send(plan, verb, call, heard);
    const batch = <O extends { readonly key: string }, A>(
      verb: LockVerb,
      operations: readonly O[],
      call: (operations: readonly O[]) => Promise<readonly A[]>,
      heard: (operation: O, answer: A, sentAt: Instant) => void,
    ): Promise<readonly A[]> => {
      const sentAt = this.node.clock.now();
      const landed = this.#flights.leave(verb, operations);
      const answers = send(
        verb,
        () => call(operations),
        (some) => operations.forEach((operation, index) => heard(operation, some[index]!, sentAt)),
      );
      this.#checkPort();
      answers.then(landed, landed);
      return answers;
    };
    return {
      ...backend,
      acquire: (claims) => {
        for (const claim of claims) this.#sentClaim(claim);
        return batch(
          'acquire',
          claims,
          (some) => backend.acquire(some),
          (...heard) => this.#heardClaim(...heard),
        );
      },
      renew: (renewals) =>
        batch(
          'renew',
          renewals,
          (some) => backend.renew(some),
          (...heard) => this.#heardRenewal(...heard),
        ),
      release: (releases) =>
        batch(
          'release',
          releases,
          (some) => backend.release(some),
          () => undefined,
        ),
      inspect: (query) => send('inspect', () => backend.inspect(query)),
      subscribe: (session, onNotice) => {
        const sink = (notice: Notice): void => this.node.deliver(() => this.#notice(notice, onNotice));
        return send('subscribe', () => backend.subscribe!(session, sink));
      },
    };
  }

  /** The way without a network: no answer is lost or late. Whatever the answer, the process may stop right behind it. */
  #shortCut(inner: AtOnce, near: NearProcess): AtOnce {
    const { stage, node } = this;
    const once = <O extends Claim | Release, A extends { readonly status: string }>(
      verb: 'acquire' | 'release',
      call: (operation: O) => A | undefined,
      operation: O,
    ): A | Failed | undefined => {
      if (!node.isUp || chance(stage.random, FAR_SHARE)) return undefined;
      const landed = this.#flights.leave(verb, [operation]);
      const fails = stage.plan.faults.has('loss') && chance(stage.random, this.faultRate);
      const answer = fails && chance(stage.random, 0.5) ? undefined : call(operation);
      landed();
      this.#checkPort();
      near.answered();
      if (!fails) return answer;
      stage.journal.note(`${node.name} ${verb} fails at once`);
      node.disturb(FAULT_TTLS * stage.plan.ttlMs);
      return { status: 'failed', cause: new Error('this step failed') };
    };
    return {
      acquire: (claim) => {
        const sentAt = node.clock.now();
        const answer = once('acquire', inner.acquire, claim);
        if (answer === undefined) return undefined;
        this.#sentClaim(claim);
        this.#heardClaim(claim, answer, sentAt);
        stage.journal.count(`at once: ${answer.status}`);
        return answer;
      },
      release: (release) => {
        const answer = once('release', inner.release, release);
        if (answer !== undefined) stage.journal.count(`at once: ${answer.status}`);
        return answer;
      },
    };
  }

  #gatedStore(store: StateStore): StateStore {
    const send = <A>(verb: StateVerb, call: () => Promise<A>): Promise<A> =>
      this.#send(this.#state.plan, verb, call);
    return {
      ...store,
      now: () => send('now', () => store.now()),
      read: (keys) => send('read', () => store.read(keys)),
      write: (writes) => send('write', () => store.write(writes)),
      scan: (prefix, cursor, limit) => send('scan', () => store.scan(prefix, cursor, limit)),
      watch: (prefix, listener) =>
        send('watch', () => store.watch(prefix, (change) => this.node.deliver(() => listener(change)))),
    };
  }

  /** Draws the fate of one request, sends it, and lets its answer in through the gate of the process. */
  #send<V extends string, A>(
    plan: FaultPlan<V>,
    verb: V,
    call: () => Promise<A>,
    heard?: (answer: A) => void,
  ): Promise<A> {
    const played = [plan.play(drawWay(this.stage), { times: 1 })];
    const fault = chance(this.stage.random, this.faultRate) ? drawFault(this.stage) : undefined;
    if (fault !== undefined) {
      this.stage.journal.note(`${this.node.name} ${verb} meets ${fault.type}`);
      this.node.disturb(FAULT_TTLS * this.stage.plan.ttlMs);
      played.push(plan.play(fault, { times: 1 }));
    }
    const sent = call();
    const answer = fault?.type === 'execute-twice' && fault.answer !== 'first' ? resent(verb, sent) : sent;
    // The request met them as it was sent; they must not stay in line.
    for (const one of played) one.stop();
    return new Promise((resolve, reject) => {
      answer.then(
        (value) =>
          this.node.deliver(() => {
            heard?.(value);
            resolve(value);
          }),
        (error: Error) => this.node.deliver(() => reject(error)),
      );
    });
  }

  #withFaultyNotices(backend: LockBackend): LockBackend {
    const subscribe = (session: string, onNotice: (notice: Notice) => void): Promise<Subscription> =>
      backend.subscribe!(session, (notice) => {
        const copies = drawNotice(this.stage, this.faultRate);
        if (copies.length === 0) this.stage.journal.note(`${this.node.name} misses a notice`);
        for (const ms of copies) this.stage.world.after(ms, () => onNotice(notice));
      });
    return { ...backend, subscribe };
  }

  #sentClaim(claim: Claim): void {
    const { node, stage } = this;
    if (this.#claims.has(claim.id)) stage.journal.count('re-sent acquire');
    this.#claims.set(claim.id, claim);
    this.calls.sent(node, claim);
  }

  #heardClaim(claim: Claim, answer: ClaimAnswer, sentAt: Instant): void {
    const { node, beliefs } = this;
    this.calls.answered(claim, answer);
    if (answer.status === 'granted') beliefs.granted(node, claim, answer.token, sentAt);
    if (answer.status === 'queued') beliefs.queued(node, claim, sentAt);
  }

  #heardRenewal(renewal: Renewal, { status }: RenewAnswer, sentAt: Instant): void {
    const { node, beliefs, stage } = this;
    const flightMs = Math.min(LONGEST_FLIGHT_MS, stage.plan.ttlMs / 3);
    const inTime = node.clock.now().monoMs - sentAt.monoMs < flightMs;
    if (status === 'renewed') beliefs.renewed(node, renewal, sentAt, inTime);
    if (status === 'lost') beliefs.refused(node, renewal.key, renewal.claim, renewal.token, inTime);
  }

  #notice(notice: Notice, onNotice: (notice: Notice) => void): void {
    const { node, beliefs, stage } = this;
    if (notice.type === 'granted') {
      const { key, claim, token } = notice;
      const ttlMs = this.#claims.get(claim)?.ttlMs ?? 0;
      beliefs.noticed(node, key, claim, token, ttlMs);
      this.calls.noticed(claim, token);
    }
    if (notice.type === 'lost') beliefs.refused(node, notice.key, notice.claim);
    const what = notice.type === 'gap' ? '' : ` ${notice.key} ${notice.claim}`;
    stage.journal.note(`${node.name} hears "${notice.type}"${what}`);
    onNotice(notice);
  }

  #checkPort(): void {
    const { violations } = this.#backend;
    for (const violation of violations.slice(this.#violations)) this.stage.journal.broken('port', violation);
    this.#violations = violations.length;
  }
}

/** An adapter whose client sent something again by itself says so where that leaves a doubt. */
async function resent<A>(verb: string, answer: Promise<A>): Promise<A> {
  const answers: unknown = await answer;
  if (!Array.isArray(answers) || (verb !== 'release' && verb !== 'write')) return answer;
  const marked = answers.map((one: { readonly status: string }) =>
    one.status === 'lost' || one.status === 'conflict' ? { ...one, resent: true } : one,
  );
  return marked as A;
}
