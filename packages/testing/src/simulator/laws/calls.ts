/**
 * What callers of the guards asked for, what reached the guards for them, and whether the outcome follows from it.
 * A claim is recognised on the wire by its ttl: every call asks for a ttl that no other call asks for.
 */
import { GuardError, type Claim, type ClaimAnswer } from '@guard/core';
import type { SimNode } from '../node.js';
import type { Stage } from '../stage.js';

/** How a call that may end with a lock ended. */
export type CallEnd =
  | { readonly end: 'granted'; readonly tokens: readonly bigint[] }
  | { readonly end: 'busy' }
  | { readonly end: 'error'; readonly error: unknown };

/** A call that is open, or was. */
export interface Call {
  readonly node: SimNode;
  /** For people: what was asked for. */
  readonly name: string;
  readonly ttlMs: number;
  /** How long it may take, in time in which its process runs (L3). */
  readonly boundMs: number;
  readonly startedActiveMs: number;
  readonly startedMs: number;
  readonly signal: AbortSignal | undefined;
  /** Claim ids on the wire. */
  readonly claims: Set<string>;
  readonly heardTokens: Set<bigint>;
  heardBusy: boolean;
  /** Claim ids that got what the caller has. */
  readonly used: Set<string>;
  /** True time at which the call was over for its claims. */
  settledMs: number | undefined;
}

/** A timer that was late by the time a process needs to wake up, and rounding. */
const SLACK_MS = 5;
/** On a clear connection a cancel arrives within so long. */
const CANCEL_MS = 50;

/** All calls of one simulation. */
export class Calls {
  readonly #stage: Stage;
  readonly #prefix: string;
  readonly #open = new Set<Call>();
  /** By process and ttl. */
  readonly #byTtl = new Map<string, Call>();
  readonly #byClaim = new Map<string, Call>();

  /** `prefix`: of the locks that callers ask for by themselves; others are of runs and nodes. */
  constructor(stage: Stage, prefix: string) {
    this.#stage = stage;
    this.#prefix = prefix;
  }

  get openCount(): number {
    return this.#open.size;
  }

  start(
    node: SimNode,
    name: string,
    boundMs: number,
    claims?: { readonly ttlMs: number; readonly signal?: AbortSignal | undefined },
  ): Call {
    const call: Call = {
      node,
      name,
      ttlMs: claims?.ttlMs ?? 0,
      boundMs,
      startedActiveMs: node.activeMs,
      startedMs: this.#stage.world.nowMs,
      signal: claims?.signal,
      claims: new Set(),
      heardTokens: new Set(),
      heardBusy: false,
      used: new Set(),
      settledMs: undefined,
    };
    this.#open.add(call);
    if (claims !== undefined) this.#byTtl.set(`${node.name}|${call.ttlMs}`, call);
    return call;
  }

  /** A request for the claim goes on the wire. */
  sent(node: SimNode, { key, id, ttlMs }: Claim): void {
    if (!key.startsWith(this.#prefix)) return;
    const call = this.#byTtl.get(`${node.name}|${ttlMs}`);
    if (call === undefined)
      return this.#stage.journal.broken('S4', `${node.name} asks for a lock that nobody asked for: ${id}`);
    call.claims.add(id);
    this.#byClaim.set(id, call);
  }

  /** An answer reached the guard. */
  answered(claim: Claim, answer: ClaimAnswer): void {
    const call = this.#byClaim.get(claim.id);
    if (call === undefined) return;
    if (answer.status === 'busy' || answer.status === 'queued') call.heardBusy = true;
    if (answer.status === 'granted') call.heardTokens.add(answer.token);
  }

  /** A notice of a hand-over reached the guard. */
  noticed(claimId: string, token: bigint): void {
    this.#byClaim.get(claimId)?.heardTokens.add(token);
  }

  /** The part of the call that concerns locks is over. */
  settle(call: Call, end: CallEnd): void {
    call.settledMs ??= this.#stage.world.nowMs;
    switch (end.end) {
      case 'granted':
        for (const token of end.tokens)
          if (!call.heardTokens.has(token))
            this.#broken('S6', call, `has token ${token}, of which it never heard`);
        return;
      case 'busy':
        if (!call.heardBusy) this.#broken('S6', call, 'is told "busy", which nobody said');
        return;
      case 'error':
        return this.#checkError(call, end.error);
    }
  }

  /** The whole call is over. */
  end(call: Call): void {
    this.#open.delete(call);
  }

  /** A process is gone; its calls are nobody's any more. */
  forget(node: SimNode): void {
    for (const call of this.#open) if (call.node === node) this.#open.delete(call);
  }

  /** A claim became the holder of a lock. */
  becameHolder(claimId: string): void {
    const call = this.#byClaim.get(claimId);
    if (call?.settledMs === undefined || call.used.has(claimId)) return;
    this.#stage.journal.count('a given-up claim was granted');
    const { node, startedMs, settledMs } = call;
    // Whatever was in the way of the cancel, or carries out an acquire late, is an excuse.
    if (node.isGone || node.disturbedUntilMs >= startedMs) return;
    if (this.#stage.world.nowMs - settledMs > CANCEL_MS)
      this.#broken('S4', call, `was given up, and its claim ${claimId} is granted the lock`);
  }

  /** Every open call of a running process is within its bound. */
  check(): void {
    for (const call of this.#open) {
      const { node, boundMs, startedActiveMs } = call;
      if (!node.isUp || node.activeMs - startedActiveMs <= boundMs + SLACK_MS) continue;
      this.#broken('L3', call, `is not settled after ${boundMs} ms`);
      this.#open.delete(call);
    }
  }

  openNames(): string[] {
    return [...this.#open].map(({ node, name }) => `${node.name} ${name}`);
  }

  #checkError(call: Call, error: unknown): void {
    const code = GuardError.is(error) ? error.code : undefined;
    const { node, startedMs } = call;
    if (code === 'aborted' && call.signal?.aborted) return;
    if (code === 'closed' && node.closing) return;
    if (code === 'unavailable') {
      this.#stage.journal.count('unavailable');
      if (node.disturbedUntilMs >= startedMs) return;
      return this.#broken('S6', call, `is told "unavailable" without a fault: ${String(error)}`);
    }
    this.#broken('S6', call, `ended with ${String(error)}`);
  }

  #broken(promise: 'S4' | 'S6' | 'L3', call: Call, message: string): void {
    this.#stage.journal.broken(promise, `${call.node.name} ${call.name} ${message}`);
  }
}
