/**
 * What a lock backend implements. One atomic step per operation, many operations per call, and no waiting, retrying
 * or timing in the adapter: all of that lives once, in the runtime, above this port. Every answer is a value; a
 * rejected promise, like `failed`, says that nothing is known about the operation (S6).
 *
 * All keys are full keys (`namespace/section/key`), at most `MAX_FULL_KEY_BYTES` long, and are compared byte by byte.
 */

/** A request for a lock. The id is unique for ever and is the only proof of ownership (S3). */
export interface Claim {
  /** Full key of the lock. */
  readonly key: string;
  /** Identity of this claim. Acquiring twice with one id is one claim (S4). */
  readonly id: string;
  /** How long the backend promises the lock, from its own now, when it grants (whole milliseconds). */
  readonly ttlMs: number;
  /** `true`: not granted means queued. `false`: not granted leaves nothing behind. */
  readonly wait: boolean;
  /** How long a ticket lives unless it is refreshed, and how long a hand-over is granted for. */
  readonly ticketTtlMs: number;
  /** One per guard. A re-sent acquire of one ticket refreshes every ticket of this session on this key. */
  readonly session: string;
  /** The grant's token must not be below this, where `traits.floor`; a ticket's floor counts at its hand-over. */
  readonly floor?: bigint;
  /** What `busy` and `inspect` show about the holder. */
  readonly holder: Holder;
}

/** What other processes may know about a holder. */
export interface Holder {
  /** Label of the node, for people. */
  readonly label: string;
  /** Identity of the run that the lock is for, where it is for one. */
  readonly run?: string;
}

/** What became of a claim in one step. */
export type ClaimAnswer =
  | Granted
  /** A ticket stands in the queue. */
  | {
      readonly status: 'queued';
      /** How many claims will be served before it, if the backend knows. */
      readonly ahead?: number;
      /**
       * Not below the largest token that was minted for the key so far, and below the one that this ticket will get;
       * 0 if none is known.
       */
      readonly minted: bigint;
      /**
       * `true`: the ticket was made in this step. On a re-sent acquire it says that the session's tickets on this
       * key had died, so its other waiting claims have to ask again.
       */
      readonly fresh?: boolean;
    }
  /** Somebody else holds the lock or stands before us, and this claim left nothing behind. */
  | { readonly status: 'busy'; readonly holder?: Holder; readonly expiresInMs?: number }
  /** A tombstone: this claim was given up, and its acquire came late (S4). */
  | { readonly status: 'cancelled' }
  | Failed;

/** In this very step the backend set the lease to at least its now + ttl, also for a re-sent acquire of a live claim (S4). */
export interface Granted {
  readonly status: 'granted';
  /** The fencing token of the grant; the same for a re-sent acquire, unless its floor is larger. */
  readonly token: bigint;
}

/** Nothing is known: the operation may or may not have been carried out. */
export interface Failed {
  readonly status: 'failed';
  readonly cause: unknown;
}

/** Names a granted claim. */
export interface LeaseRef {
  readonly key: string;
  /** Id of the claim that was granted. */
  readonly claim: string;
  readonly token: bigint;
  readonly session: string;
}

/** A renewal sets the lease to now + ttl, and never to an earlier time than it already ends (S5). */
export interface Renewal extends LeaseRef {
  readonly ttlMs: number;
}

/** What became of a renewal. `lost`: the claim does not hold the lock (any more), and nothing was created (S5). */
export type RenewAnswer = { readonly status: 'renewed' } | { readonly status: 'lost' } | Failed;

/** Gives a lock back, or gives a claim up. */
export type Release =
  | ({ readonly cancel?: false } & LeaseRef)
  /**
   * Removes whatever the claim has (grant, ticket, or nothing) and leaves a tombstone for `tombstoneMs`, which
   * refuses the claim's late acquire with `cancelled`. `0` leaves none: every acquire of it was answered.
   */
  | {
      readonly cancel: true;
      readonly key: string;
      readonly claim: string;
      readonly session: string;
      readonly tombstoneMs: number;
    };

/**
 * What became of a release. `released`: this step took the grant (or the ticket) away, or left the tombstone; a lock
 * that was taken away from its holder goes to the first live ticket in the same step. `lost`: the claim held nothing.
 */
export type ReleaseAnswer =
  | { readonly status: 'released' }
  /** `resent: true`: the client may have sent it more than once by itself, so an earlier sending may have done it. */
  | { readonly status: 'lost'; readonly resent?: boolean }
  | Failed;

/** Which locks to look at. */
export type LockQuery =
  | { readonly keys: readonly string[] }
  /** Held locks below a prefix, in the order of their bytes, after `after`. */
  | { readonly prefix: string; readonly after?: string; readonly limit: number };

/** What the backend knows about one key, by its own clock. */
export interface LockInfo {
  readonly key: string;
  readonly held: boolean;
  readonly holder?: Holder;
  /** Not below the largest token minted for the key, also while it is free; 0 if none is known. */
  readonly token: bigint;
  readonly expiresInMs?: number;
  /** Live tickets. */
  readonly waiting: number;
  /** Names the grant, for a person's `forceRelease`. Never shown outside. */
  readonly lease?: LeaseRef;
}

/** A message of the backend. Late, doubled and lost notices cost time, never safety. */
export type Notice =
  /** A hand-over: the ticket became the holder, for its `ticketTtlMs`. */
  | { readonly type: 'granted'; readonly key: string; readonly claim: string; readonly token: bigint }
  /** The ticket may have become the holder: its claim asks, and that answer counts. */
  | { readonly type: 'turn'; readonly key: string; readonly claim: string }
  /** The claim does not hold the lock any more. */
  | { readonly type: 'lost'; readonly key: string; readonly claim: string }
  /**
   * Notices may have been missed: every waiting claim asks again. `open: false`: none will come until a further gap
   * notice says `open: true`; meanwhile waiting claims poll.
   */
  | { readonly type: 'gap'; readonly open: boolean };

/** An open stream of notices. */
export interface Subscription {
  close(): Promise<void>;
}

/** What a backend can do; the runtime adapts to it, and the contract suite checks it. */
export interface LockTraits {
  /** Waiters are served in the order in which the backend saw them (L2). */
  readonly fifo: boolean;
  /** Waiters are woken by notices (L2); otherwise they poll. */
  readonly push: boolean;
  /** Grants honour `Claim.floor`. */
  readonly floor: boolean;
  /** The shortest ttl it keeps. */
  readonly minTtlMs: number;
  /** How much later than asked for a lease may end. Never earlier. */
  readonly ttlGranularityMs: number;
  /** The most operations that one call takes. */
  readonly maxBatch: number;
  /** The most renewals that one call takes, where they are cheaper than other operations. Default `maxBatch`. */
  readonly maxRenew?: number;
  /**
   * Notices tell of locks that are gone sooner than renewals do, so holders listen as well. Default: only waiters do.
   */
  readonly tellsLosses?: boolean;
}

/**
 * Single operations without a promise, for a backend that answers without I/O: there a promise costs more than the
 * lock. The same steps as in a batch of one, in one order with the batches; notices come after the call has returned.
 * `undefined`: nothing was done, send it by a call that may take time.
 */
export interface AtOnce {
  readonly acquire: (claim: Claim) => ClaimAnswer | undefined;
  readonly release: (release: Release) => ReleaseAnswer | undefined;
}

/**
 * A lock backend. In one call there is at most one operation per key, all operations are of one partition, and they
 * are sorted by key; the answers stand in the order of the operations.
 */
export interface LockBackend {
  /** Names the backend and the place it keeps its locks in; fences compare tokens of one name only. */
  readonly name: string;
  readonly traits: LockTraits;
  /** A batch never crosses a partition (a cluster's slot, a server). Few and stable. Default: one partition. */
  partition?(key: string): string;
  acquire(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]>;
  renew(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]>;
  release(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]>;
  inspect(query: LockQuery): Promise<readonly LockInfo[]>;
  /** Opens the stream of notices for one session; present where `traits.push`. Rejected: waiting claims poll. */
  subscribe?(session: string, onNotice: (notice: Notice) => void): Promise<Subscription>;
  /**
   * The short cut of a backend inside this process; its answers are those that `acquire` and `release` would give. A
   * wrapper that wants to see every operation has to wrap it too, or to leave it out.
   */
  atOnce?(): AtOnce;
  /** Frees what the adapter opened by itself; never a client that was handed in. */
  close(): Promise<void>;
}
