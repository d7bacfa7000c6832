/**
 * What this adapter needs of an etcd client, and nothing more. The client is the application's own: its hosts, users,
 * certificates and retries stay in force. Two things are added to each call: a deadline for every sending, so that a
 * member that hangs is left for another one, and the knowledge whether the client sent more than once by itself.
 */
import { checkOptions, invalidArgument, systemClock, type Clock } from '@guard/core';
import type {
  IDuplexStream,
  ILeaseGrantResponse,
  ILeaseKeepAliveRequest,
  ILeaseKeepAliveResponse,
  ILeaseTimeToLiveResponse,
  IRangeRequest,
  IRangeResponse,
  ITxnRequest,
  ITxnResponse,
  IWatchRequest,
  IWatchResponse,
  Namespace,
} from 'etcd3';
import { Names } from './names.js';
import { asNotValid, isLoginOutdated } from './outdated-login.js';

/** What is used of an `Etcd3` client, or of a namespace of one. */
export type EtcdClient = Pick<Namespace, 'kv' | 'leaseClient' | 'watchClient' | 'prefix'>;

/** The stream of keep-alives. */
export type BeatStream = IDuplexStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;

/** A stream of changes. */
export type ChangeStream = IDuplexStream<IWatchRequest, IWatchResponse>;

/** After this long one sending is given up, and the client tries another member. */
export const SENDING_MS = { locks: 1_500, state: 4_000 } as const;

/** Options that locks and state share. */
export interface EtcdOptions {
  readonly cluster?: string;
  readonly clock?: Clock;
}

/** Checks the options of `etcdLocks` or `etcdState`. */
export function checkEtcdOptions(of: string, options: EtcdOptions): void {
  checkOptions(of, options, ['cluster', 'clock']);
  const { cluster, clock } = options;
  if (cluster !== undefined && (typeof cluster !== 'string' || cluster === '')) {
    throw invalidArgument('cluster', cluster, 'must be a text that is not empty');
  }
  const given = clock as Partial<Clock> | undefined;
  if (clock !== undefined && (typeof given?.now !== 'function' || typeof given.setTimer !== 'function')) {
    throw invalidArgument('clock', clock, 'must be a clock');
  }
}

/** A client as this adapter sees it. */
export class EtcdConnection {
  readonly names: Names;
  /** The client's own prefix, for the name of the place. */
  readonly prefix: string;
  private loggingIn: Promise<void> | undefined;

  constructor(
    private readonly client: EtcdClient,
    private readonly sendingMs: number,
  ) {
    const given = client as Partial<EtcdClient> | null | undefined;
    const isOne =
      typeof given?.kv?.txn === 'function' &&
      typeof given.leaseClient?.leaseGrant === 'function' &&
      typeof given.watchClient?.watch === 'function' &&
      Buffer.isBuffer(given.prefix);
    if (!isOne) {
      throw invalidArgument('client', client, 'must be an Etcd3 of the library etcd3, or a namespace of one');
    }
    this.names = new Names(client.prefix);
    this.prefix = client.prefix.toString();
  }

  /** `resent`: the client sent it more than once, so what it says may be the echo of an earlier sending (S4). */
  txn(request: ITxnRequest): Promise<{ readonly response: ITxnResponse; readonly resent: boolean }> {
    return this.loggedIn(async (sending) => {
      const response = await this.client.kv.txn(request, sending.options);
      return { response, resent: sending.count > 1 };
    });
  }

  range(request: IRangeRequest): Promise<IRangeResponse> {
    return this.loggedIn(({ options }) => this.client.kv.range(request, options));
  }

  /** The revision of the cluster, as a majority says. */
  async revision(): Promise<bigint> {
    const { header } = await this.range({ key: this.names.lock('').key });
    return BigInt(header.revision);
  }

  grant(seconds: number): Promise<ILeaseGrantResponse> {
    return this.loggedIn(({ options }) =>
      this.client.leaseClient.leaseGrant({ TTL: seconds, ID: 0 }, options),
    );
  }

  async revoke(lease: string): Promise<void> {
    await this.loggedIn(({ options }) => this.client.leaseClient.leaseRevoke({ ID: lease }, options));
  }

  timeToLive(lease: string, keys = false): Promise<ILeaseTimeToLiveResponse> {
    return this.loggedIn(({ options }) =>
      this.client.leaseClient.leaseTimeToLive({ ID: lease, keys }, options),
    );
  }

  beats(): Promise<BeatStream> {
    return this.client.leaseClient.leaseKeepAlive();
  }

  changes(): Promise<ChangeStream> {
    return this.client.watchClient.watch();
  }

  /** Sends, and once more where etcd did nothing because the client's login was outdated. */
  private async loggedIn<T>(send: (sending: Sending) => Promise<T>): Promise<T> {
    const sending = new Sending(this.sendingMs);
    try {
      return await send(sending);
    } catch (cause) {
      if (!isLoginOutdated(cause)) throw cause;
      // Whoever meets it meanwhile waits for the same login.
      this.loggingIn ??= this.logInAnew().finally(() => (this.loggingIn = undefined));
      await this.loggingIn;
      // The sending that was refused does not count.
      sending.count -= 1;
      return send(sending);
    }
  }

  private async logInAnew(): Promise<void> {
    const { deadline } = new Sending(this.sendingMs).options;
    const options = { deadline, interceptors: [asNotValid] };
    await this.client.kv.range({ key: this.names.lock('').key }, options as object);
  }
}

/**
 * Options of one call. The client reads the deadline anew for each sending, at once and in one turn; so the deadline
 * is counted from there, and reading it counts the sendings.
 */
class Sending {
  count = 0;
  readonly options: { readonly deadline: number };
  private current: number | undefined;

  constructor(private readonly ms: number) {
    const next = (): number => this.next();
    this.options = {
      get deadline() {
        return next();
      },
    };
  }

  private next(): number {
    if (this.current === undefined) {
      this.count += 1;
      this.current = systemClock.now().wallMs + this.ms;
      queueMicrotask(() => (this.current = undefined));
    }
    return this.current;
  }
}

/** Whether etcd says that a lease is over. */
export function isLeaseGone(error: unknown): boolean {
  return error instanceof Error && error.message.includes('requested lease not found');
}

/** Whether the server refuses every write for want of space; it still deletes. */
export function isOutOfSpace(error: unknown): error is Error {
  return error instanceof Error && error.message.includes('database space exceeded');
}
