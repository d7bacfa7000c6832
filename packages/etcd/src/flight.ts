/**
 * One transaction with the keep-alives that it needs. What a flight says about leases counts only where a keep-alive
 * went along, or the last one was sent recently enough; a keep-alive says nothing where the transaction was answered
 * in another term than it.
 */
import type { Clock, Instant } from '@guard/core';
import { isOvertaken, type Claims, type Own } from './claims.js';
import { isLeaseGone, type EtcdConnection } from './connection.js';
import type { HandOvers } from './hand-over.js';
import type { Markers } from './markers.js';
import type { Session, Sessions, Verdict } from './sessions.js';
import { clear } from './statements/release.js';
import { apart, found, together, type Answer, type Step } from './statements/txn.js';

/** A flight that landed. */
export interface Landed {
  readonly answers: readonly Answer[];
  readonly revision: bigint;
  readonly resent: boolean;
  /** What is known of a session that the flight was told to look after. */
  verdict(session: Session): Verdict;
}

/** A session that a flight needs for so long. */
export interface Need {
  readonly session: Session;
  readonly ttlMs: number;
}

/** A lease that the transaction names is over: nothing of it was carried out. */
export class LeaseGone extends Error {}

/** Sends the flights of one adapter. */
export class Flights {
  constructor(
    private readonly connection: EtcdConnection,
    private readonly clock: Clock,
    private readonly sessions: Sessions,
    private readonly claims: Claims,
    private readonly handOvers: HandOvers,
    private readonly markers: Markers,
  ) {}

  /**
   * Carries steps out together.
   *
   * @throws LeaseGone; anything else says that nothing is known.
   */
  async fly(steps: readonly Step[], needs: readonly Need[]): Promise<Landed> {
    const { markers } = this;
    const due = dueOf(needs, this.clock.now());
    const unmarked = markers.unmarked(needs);
    const also = unmarked.map((session) => markers.put(session));
    const sending = this.connection.txn(together(steps, also));
    const verdicts = due.size === 0 ? undefined : this.beat(due, termOf(sending));
    try {
      const { response, resent } = await sending;
      for (const session of unmarked) session.marked = true;
      const known = verdicts && (await verdicts);
      return {
        answers: apart(response, steps.length + also.length).slice(0, steps.length),
        revision: BigInt(response.header.revision),
        resent,
        verdict: (session) => (session.over ? 'over' : (known?.get(session) ?? 'good')),
      };
    } catch (cause) {
      await verdicts;
      if (!isLeaseGone(cause)) throw cause;
      await this.findOver(needs);
      throw new LeaseGone('a lease was over', { cause });
    }
  }

  /** Which of the leases is it? One that cannot be asked takes no new claims. */
  private async findOver(needs: readonly Need[]): Promise<void> {
    const look = async (session: Session): Promise<void> => {
      const { TTL } = await this.connection.timeToLive(session.lease).catch(() => ({ TTL: undefined }));
      if (TTL !== undefined && Number(TTL) <= 0) this.sessions.end(session);
      else this.sessions.retire(session);
    };
    await Promise.all([...new Set(needs.map(({ session }) => session))].map(look));
  }

  /** Sends the keep-alives that are due. `term`: of an operation of the same flight. */
  lookAfter(
    needs: readonly Need[],
    now: Instant,
    term: Promise<string>,
  ): Promise<ReadonlyMap<Session, Verdict>> {
    return this.beat(dueOf(needs, now), term);
  }

  private async beat(
    due: ReadonlyMap<Session, number>,
    term: Promise<string>,
  ): Promise<ReadonlyMap<Session, Verdict>> {
    const known = new Map<Session, Verdict>();
    const beats = [...due].map(async ([session, ttlMs]) => {
      known.set(session, await this.sessions.beat(session, ttlMs, term));
    });
    await Promise.all(beats);
    return known;
  }

  /**
   * Takes the keys of claims away that nobody holds, each of another lock, and tells who holds the locks then. `false`:
   * it stands, because something was written to it meanwhile, or only now its revision is known.
   */
  async take(some: readonly Own[]): Promise<readonly boolean[]> {
    const known = some.flatMap((own) =>
      own.created === undefined ? [] : [{ ...own, own, created: own.created }],
    );
    const steps = known.map(({ lock, name, created, modified }) => clear(lock, name, { created, modified }));
    const gone = new Map<Own, boolean>();
    if (steps.length > 0) {
      const { response } = await this.connection.txn(together(steps));
      const answers = apart(response, steps.length);
      const revision = BigInt(response.header.revision);
      known.forEach((before, n) => gone.set(before.own, this.taken(before, answers[n]!, revision)));
    }
    return Promise.all(some.map(async (own) => gone.get(own) ?? this.look(own)));
  }

  private taken(before: Taking, { succeeded, responses }: Answer, revision: bigint): boolean {
    const { own, created, seen, home } = before;
    if (isOvertaken(own, seen, revision)) return false;
    own.seen = revision;
    if (!succeeded) return !this.claims.found(own, found(responses[0])[0]);
    this.claims.lose(own);
    this.handOvers.passedOn(own.key, created, found(responses[1]), home?.lease);
    return true;
  }

  /** Whether there is no key of the claim. One that is there is known from now on. */
  async look(own: Own): Promise<boolean> {
    const { seen } = own;
    const { kvs, header } = await this.connection.range({ key: own.name });
    const revision = BigInt(header.revision);
    if (isOvertaken(own, seen, revision)) return false;
    own.seen = revision;
    return !this.claims.found(own, kvs[0]);
  }
}

/** A claim whose key is being taken away, and what was known of that when it was asked for. */
interface Taking extends Pick<Own, 'seen' | 'home'> {
  readonly own: Own;
  readonly created: bigint;
}

/** Sessions of which the last keep-alive is too old for what is asked, each with the shortest ttl of that. */
function dueOf(needs: readonly Need[], now: Instant): ReadonlyMap<Session, number> {
  const due = new Map<Session, number>();
  for (const { session, ttlMs } of needs) {
    if (session.covers(ttlMs, now)) continue;
    due.set(session, Math.min(ttlMs, due.get(session) ?? Infinity));
  }
  return due;
}

function termOf(sending: ReturnType<EtcdConnection['txn']>): Promise<string> {
  const term = sending.then(({ response }) => response.header.raft_term);
  // Where the keep-alive fails first, nobody asks for it.
  term.catch(() => undefined);
  return term;
}
