/**
 * Who believes to hold what, and whether that is right. The time for which a lock may be believed is counted here
 * from what went over the wire, not from what the handle says.
 *
 * Asking a handle makes it look at the clock, which could hide a timer that never comes. So only some locks are asked
 * after every turn; of the others only the signal is looked at, as an application does that waits for it.
 */
import { marginMs, type Claim, type Instant, type Lock, type Renewal } from '@guard/core';
import type { SimNode } from '../node.js';
import { chance } from '../chance.js';
import type { Stage } from '../stage.js';
import type { Grants } from './grants.js';

/** For how long an answer lets a lock be believed. */
interface Trust {
  /** Read on the node's clocks before the request was sent. */
  readonly sentAt: Instant;
  readonly trustMs: number;
  /** The guard certainly took the answer, and did not give the request up before. */
  readonly taken: boolean;
}

/** What went over the wire about one grant. */
interface Wire {
  readonly claim: string;
  readonly trusts: Trust[];
  /** The backend said "lost", and it reached the guard. */
  refused: boolean;
  /** And the guard still waited for that answer. */
  surelyRefused: boolean;
}

/** One lock in the hands of one process. */
export interface Belief {
  readonly node: SimNode;
  readonly lock: Lock;
  readonly fullKey: string;
  readonly ttlMs: number;
  readonly wire: Wire;
  readonly asked: boolean;
  readonly signal: AbortSignal;
  /** When only the wall clock was seen past the deadline, in active time of the node. */
  doubtSinceMs: number | undefined;
  doubted: boolean;
  told: boolean;
}

/** Rounding of clocks that run at odd speeds. */
const EXACT_MS = 0.001;
/** How often a guard compares its two clocks, and what it needs to hear itself. */
const DOUBT_SEEN_MS = 500 + 25;
/** How long a ticket lives, and a hand-over lasts, at most. */
const LONGEST_TICKET_MS = 6_000;

/** All beliefs of one simulation. */
export class Beliefs {
  readonly #stage: Stage;
  readonly #grants: Grants;
  readonly #wires = new Map<string, Wire>();
  /** By process and token. */
  readonly #keys = new Map<string, string>();
  /** When the tickets of a process on a key were last refreshed, for all it knows. */
  readonly #refreshed = new Map<string, Instant>();
  /** By claim: what its last notice told of. */
  readonly #noticed = new Map<string, Wire>();
  readonly #open = new Set<Belief>();
  readonly #lastLocks = new Map<string, Lock>();

  constructor(stage: Stage, grants: Grants) {
    this.#stage = stage;
    this.#grants = grants;
  }

  /** "granted" reached the guard. */
  granted(node: SimNode, { key, id, ttlMs }: Claim, token: bigint, sentAt: Instant): void {
    const wire = this.#wire(node, key, token, id);
    // A claim that has its lock, or was told of it, by a notice, does not look at the answer.
    const isOpen = [...this.#open].some((belief) => belief.wire === wire);
    const taken = !isOpen && this.#noticed.get(id) !== wire;
    wire.trusts.push(trustOf(ttlMs, sentAt, taken));
  }

  /** "queued" reached the guard. A notice may have come before it, and is believed from now on. */
  queued(node: SimNode, { key, id, ttlMs }: Claim, sentAt: Instant): void {
    const place = `${node.name}|${key}`;
    const known = this.#refreshed.get(place);
    if (known === undefined || sentAt.monoMs > known.monoMs) this.#refreshed.set(place, sentAt);
    this.#noticed.get(id)?.trusts.push(trustOf(Math.min(ttlMs, LONGEST_TICKET_MS), sentAt, false));
  }

  /** A notice of a hand-over reached the guard: it tells who, and the last refresh tells for how long. */
  noticed(node: SimNode, key: string, claim: string, token: bigint, ttlMs: number): void {
    const wire = this.#wire(node, key, token, claim);
    this.#noticed.set(claim, wire);
    const sentAt = this.#refreshed.get(`${node.name}|${key}`);
    if (sentAt !== undefined) wire.trusts.push(trustOf(Math.min(ttlMs, LONGEST_TICKET_MS), sentAt, false));
  }

  /** "renewed" reached the guard, which may have given the request up before. */
  renewed(node: SimNode, { key, claim, token, ttlMs }: Renewal, sentAt: Instant, inTime: boolean): void {
    this.#wire(node, key, token, claim).trusts.push(trustOf(ttlMs, sentAt, inTime));
  }

  /** "lost" reached the guard. */
  refused(node: SimNode, key: string, claim: string, token?: bigint, inTime = true): void {
    for (const belief of this.#open) {
      if (belief.node !== node || belief.fullKey !== key || belief.wire.claim !== claim) continue;
      if (token !== undefined && belief.lock.token !== token) continue;
      belief.wire.refused = true;
      if (inTime) belief.wire.surelyRefused = true;
    }
  }

  /** Full key of the lock of this token, for all that the process heard. */
  keyOf(node: SimNode, token: bigint): string {
    return this.#keys.get(`${node.name}#${token}`) ?? '';
  }

  /** A caller has a lock. Answers what it stands for, and the claim that was granted. */
  enter(node: SimNode, fullKey: string, ttlMs: number, lock: Lock): Belief {
    const wire = this.#wire(node, fullKey, lock.token, '');
    const belief: Belief = {
      node,
      lock,
      fullKey,
      ttlMs,
      wire,
      asked: chance(this.#stage.random, 0.5),
      signal: lock.signal,
      doubtSinceMs: undefined,
      doubted: false,
      told: false,
    };
    this.#checkToken(node, fullKey, lock);
    if (!lock.isHeld()) this.#broken('S6', belief, 'is handed out, and not held even now');
    this.#open.add(belief);
    return belief;
  }

  /** The caller begins to release, or the process is gone. */
  exit(belief: Belief): void {
    this.#open.delete(belief);
  }

  forget(node: SimNode): void {
    for (const belief of this.#open) if (belief.node === node) this.#open.delete(belief);
  }

  /** Looks at every belief of every process that runs. */
  check(): void {
    const believers = new Map<string, Belief>();
    for (const belief of this.#open) {
      if (!belief.node.isUp) continue;
      this.#checkSignal(belief);
      if (!this.#believes(belief)) continue;
      const other = believers.get(belief.fullKey);
      const forgotten = (one: Belief): boolean => this.#grants.wasForgotten(one.fullKey, one.lock.token);
      if (other !== undefined && !forgotten(other) && !forgotten(belief))
        this.#broken('S1', belief, `is held beside ${other.node.name} with token ${other.lock.token}`);
      believers.set(belief.fullKey, belief);
      if (!this.#grants.keeps(belief.fullKey, belief.lock.token))
        this.#broken('S1', belief, 'is believed, and the backend does not keep it any more');
      if (belief.wire.surelyRefused) this.#broken('L1', belief, 'is believed after the backend said "lost"');
    }
  }

  #believes(belief: Belief): boolean {
    const trusted = deadline(belief, 'mono') > 0 && deadline(belief, 'wall') > 0;
    if (!belief.asked) return trusted && !belief.signal.aborted;
    const held = belief.lock.isHeld();
    if (held && !trusted) this.#broken('S1', belief, 'says "held" beyond every deadline');
    return held;
  }

  /** L1: not later than the deadline, and not before it without a reason. */
  #checkSignal(belief: Belief): void {
    if (belief.signal.aborted) return this.#checkReason(belief);
    if (deadline(belief, 'mono') < -EXACT_MS && belief.node.isAwake)
      this.#broken('L1', belief, `is lost since ${-deadline(belief, 'mono')} ms, and the signal is silent`);
    if (deadline(belief, 'wall') > 0) {
      belief.doubtSinceMs = undefined;
      return;
    }
    if (!belief.doubted) this.#stage.journal.count('doubt by the wall clock');
    belief.doubted = true;
    belief.doubtSinceMs ??= belief.node.activeMs;
    const verdictMs = Math.max(1_000, marginMs(belief.ttlMs)) + DOUBT_SEEN_MS;
    if (belief.node.activeMs - belief.doubtSinceMs > verdictMs)
      this.#broken('L1', belief, `is in doubt for more than ${verdictMs} ms, and the signal is silent`);
  }

  #checkReason(belief: Belief): void {
    if (belief.told) return;
    belief.told = true;
    const reason = String(belief.signal.reason);
    this.#stage.journal.note(
      `${belief.node.name} ${belief.lock.key} #${belief.lock.token} is lost: ${reason}`,
    );
    this.#stage.journal.count('lock lost');
    if (reason.includes('backend says') && !belief.wire.refused)
      this.#broken('S6', belief, 'is lost because of an answer that nobody gave');
    if (reason.includes('trust deadline') && !belief.doubted && deadline(belief, 'mono', true) > EXACT_MS)
      this.#broken('S5', belief, `is lost ${deadline(belief, 'mono', true)} ms before its deadline`);
  }

  /** S2 as one process sees it. */
  #checkToken(node: SimNode, fullKey: string, lock: Lock): void {
    const place = `${node.name}|${fullKey}`;
    const last = this.#lastLocks.get(place);
    // The next attempt of a run goes on under the very lock of the last one; a lock of a set is shown late.
    const excused = last === lock || this.#grants.wasForgotten(fullKey, lock.token);
    if (last !== undefined && !excused && lock.token <= last.token)
      this.#stage.journal.broken('S2', `${node.name} ${fullKey}: token ${lock.token} after ${last.token}`);
    this.#lastLocks.set(place, lock);
  }

  #wire(node: SimNode, key: string, token: bigint, claim: string): Wire {
    const name = `${node.name}|${key}#${token}`;
    let wire = this.#wires.get(name);
    if (wire === undefined) {
      wire = { claim, trusts: [], refused: false, surelyRefused: false };
      this.#wires.set(name, wire);
      this.#keys.set(`${node.name}#${token}`, key);
    }
    return wire;
  }

  #broken(promise: 'S1' | 'S5' | 'S6' | 'L1', { node, lock }: Belief, message: string): void {
    this.#stage.journal.broken(promise, `${node.name} ${lock.key} #${lock.token} ${message}`);
  }
}

function trustOf(ttlMs: number, sentAt: Instant, taken: boolean): Trust {
  return { sentAt, trustMs: ttlMs - marginMs(ttlMs), taken };
}

/** Milliseconds until the last deadline by one clock; negative beyond it. `takenOnly`: of answers surely taken. */
function deadline({ wire, node }: Belief, clock: 'mono' | 'wall', takenOnly = false): number {
  const now = node.clock.now();
  let left = -Infinity;
  for (const { sentAt, trustMs, taken } of wire.trusts) {
    if (takenOnly && !taken) continue;
    const passedMs = clock === 'mono' ? now.monoMs - sentAt.monoMs : now.wallMs - sentAt.wallMs;
    left = Math.max(left, trustMs - passedMs);
  }
  return left;
}
