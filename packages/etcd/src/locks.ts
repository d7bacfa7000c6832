/**
 * `etcdLocks`: locks on etcd. Every verb is one transaction, atomic in the cluster and safe to send again. The lock is
 * held by the oldest key of its range; who waits has a younger one. Nothing ever decides who holds a lock but the order
 * in which etcd created the keys, and nothing ends one but a delete or the end of its lease.
 */
import {
  GuardError,
  systemClock,
  systemRandom,
  type Claim,
  type ClaimAnswer,
  type Clock,
  type LockBackend,
  type LockInfo,
  type LockQuery,
  type LockTraits,
  type Notice,
  type Release,
  type ReleaseAnswer,
  type Renewal,
  type RenewAnswer,
  type Subscription,
} from '@guard/core';
import { Acquiring, type AcquireHost } from './acquiring.js';
import { BusyLocks } from './busy-locks.js';
import { Claims } from './claims.js';
import { checkEtcdOptions, EtcdConnection, SENDING_MS, type EtcdClient } from './connection.js';
import { Tombstones } from './fading-leases.js';
import { Flights } from './flight.js';
import { HandOvers } from './hand-over.js';
import { Inbox } from './inbox.js';
import { inspectBelow, inspectKeys } from './inspecting.js';
import { KeepAlive } from './keep-alive.js';
import { Markers } from './markers.js';
import { OwnKeys } from './own-keys.js';
import { Predecessors } from './predecessors.js';
import { Preparing } from './preparing.js';
import { Reaper } from './reaper.js';
import { Releasing } from './releasing.js';
import { RenewingCall } from './renewing.js';
import { Sessions } from './sessions.js';
import { Strays } from './strays.js';
import { MAX_STEPS } from './statements/txn.js';
import { WatchStream } from './watch-stream.js';

/** Options of `etcdLocks`. */
export interface EtcdLocksOptions {
  /**
   * Names the cluster, where an application uses more than one: fences compare tokens of one cluster only. All nodes
   * name it alike. Default `'etcd'`.
   */
  readonly cluster?: string;
  /** For tests. Default: the system's clock. */
  readonly clock?: Clock;
}

/**
 * A lock backend on etcd, over an `Etcd3` client of the library etcd3, or a namespace of one. The client stays the
 * application's: Guard never closes it.
 *
 * @throws GuardError `invalid-argument`: not such a client, or an option that is not valid.
 */
export function etcdLocks(client: EtcdClient, options: EtcdLocksOptions = {}): LockBackend {
  checkEtcdOptions('etcdLocks', options);
  return new EtcdLocks(new EtcdConnection(client, SENDING_MS.locks), options);
}

class EtcdLocks implements LockBackend {
  readonly name: string;
  readonly traits: LockTraits = {
    fifo: true,
    push: true,
    floor: false,
    // etcd grants no lease below two seconds.
    minTtlMs: 2_000,
    // A lease is one second longer than the ttl, and is looked for every half second once it is over.
    ttlGranularityMs: 1_500,
    maxBatch: MAX_STEPS,
    maxRenew: 5_000,
    tellsLosses: true,
  };
  private readonly beats: KeepAlive;
  private readonly inbox: Inbox;
  private readonly stream: WatchStream;
  private readonly tombstones: Tombstones;
  private readonly reaper: Reaper;
  private readonly strays: Strays;
  private readonly host: AcquireHost;
  private closed = false;

  constructor(connection: EtcdConnection, { cluster = 'etcd', clock = systemClock }: EtcdLocksOptions) {
    this.name = `etcd://${cluster}/${connection.prefix}`;
    // A silent stream of keep-alives is a sign that the watch is as dead as it is.
    this.beats = new KeepAlive(connection, clock, () => stream.renew());
    const sessions = new Sessions(connection, this.beats, clock);
    const claims = new Claims(connection.names, sessions, systemRandom.id());
    const { names } = connection;
    const stream = new WatchStream(connection, clock);
    this.stream = stream;
    const predecessors = new Predecessors(stream, names, claims.process, () => this.inbox.wake());
    this.inbox = new Inbox(stream, names, claims.process, {
      message: (message) => handOvers.arrived(message),
      deleted: (name) => markers.deleted(name),
      reopened: () => void markers.verify(),
      unheard: () => {
        predecessors.close();
        ownKeys.close();
      },
    });
    const handOvers = new HandOvers(connection, claims, this.inbox, clock, {
      lookLater: (name) => this.strays.lookLater(name),
      lookAtHead: (key) => this.strays.lookAtHead(key),
    });
    this.strays = new Strays(connection, clock, claims, sessions, handOvers);
    const tell = (session: string, notice: Notice): void => this.inbox.deliver(session, notice);
    const markers = new Markers(connection, sessions, claims, tell);
    const flights = new Flights(connection, clock, sessions, claims, handOvers, markers);
    const ownKeys = new OwnKeys(stream, clock, claims, (own) => flights.look(own), this.inbox);
    this.tombstones = new Tombstones(connection, clock);
    this.reaper = new Reaper(clock, claims, (some) => flights.take(some));
    const busyLocks = new BusyLocks();
    this.host = {
      connection,
      clock,
      sessions,
      claims,
      busyLocks,
      handOvers,
      flights,
      reaper: this.reaper,
      strays: this.strays,
      preparing: new Preparing(sessions, busyLocks),
      predecessors,
      ownKeys,
    };
  }

  async acquire(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    if (this.closed) return this.refusal();
    const answers = await new Acquiring(this.host).run(claims);
    if (!this.closed) return answers;
    // Nobody keeps alive what was granted while it was being closed: its lease is given back.
    for (const { id } of claims) this.host.claims.forgetById(id);
    return this.refusal();
  }

  renew(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    return this.closed ? this.refusal() : new RenewingCall(this.host).run(renewals);
  }

  release(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    return new Releasing(this.host, this.tombstones).run(releases);
  }

  inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    const { connection } = this.host;
    return 'keys' in query ? inspectKeys(connection, query.keys) : inspectBelow(connection, query);
  }

  subscribe(session: string, onNotice: (notice: Notice) => void): Promise<Subscription> {
    if (this.closed) return this.refusal();
    const subscription = this.inbox.subscribe(session, onNotice);
    // The first lock of a process is held before anybody listens.
    this.host.ownKeys.held();
    return subscription;
  }

  /** Nothing keeps a lease alive any more. What is held can still be given back. */
  private refusal(): Promise<never> {
    const what = `${this.name} was closed, and grants and renews nothing any more`;
    return Promise.reject(new GuardError('closed', `${what}: close the guard first, then its locks`));
  }

  async close(): Promise<void> {
    this.closed = true;
    this.inbox.close();
    this.beats.close();
    this.reaper.close();
    this.strays.close();
    this.stream.close();
    await this.host.sessions.close();
  }
}
