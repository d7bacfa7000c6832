/**
 * The calls to a lock backend, each verb through its coalescer. Acquires and questions pass the policy; renewals,
 * releases and cancels never do, since they are what keeps an outage from doing harm. Every answer tells the outage
 * watch whether the backend is there.
 */
import { trustMs } from '../../machine/claim.js';
import type { Clock, Policy } from '../../port/clock.js';
import type {
  AtOnce,
  Claim,
  ClaimAnswer,
  Failed,
  LockBackend,
  LockInfo,
  LockQuery,
  Release,
  ReleaseAnswer,
  Renewal,
  RenewAnswer,
} from '../../port/lock-backend.js';
import { Coalescer } from './coalescer.js';
import type { Landing, Sink, Submitted } from './operation.js';
import type { Events } from '../events.js';
import { Loads } from './load.js';
import { Outage } from './outage.js';
import type { Scheduler } from './scheduler.js';
import { turnOf, type Turn } from './turn.js';

const LONGEST_FLIGHT_MS = 5_000;
/** Shorter than a caller of `release()` waits, so that a lost answer is asked for again in time. */
const LONGEST_RELEASE_MS = 2_000;

/** The verbs of one backend. */
export class Verbs {
  private readonly outage: Outage;
  private readonly acquires: Coalescer<Claim, ClaimAnswer>;
  private readonly renewals: Coalescer<Renewal, RenewAnswer>;
  private readonly releases: Coalescer<Release, ReleaseAnswer>;
  private readonly turn: Turn;

  constructor(
    private readonly backend: LockBackend,
    clock: Clock,
    events: Events,
    policy: Policy,
    deadlines: Scheduler,
  ) {
    this.outage = new Outage(backend.name, events, policy, clock);
    const { maxBatch, maxRenew } = backend.traits;
    const watch = (landing: AnyLanding, partition: string): void => this.watch(landing, partition);
    const common = { clock, deadlines, maxBatch, watch };
    const atOnce = backend.atOnce?.();
    this.turn = turnOf(clock);
    const loads = new Loads();
    this.acquires = new Coalescer({
      ...common,
      loads,
      turn: this.turn,
      ...(atOnce && { atOnce: (claim, nowMonoMs) => this.claimed(atOnce, claim, nowMonoMs) }),
      send: (batch, partition) => this.outage.guarded(() => backend.acquire(batch), partition),
    });
    this.renewals = new Coalescer({
      ...common,
      maxBatch: maxRenew ?? maxBatch,
      together: true,
      send: (batch) => backend.renew(batch),
    });
    this.releases = new Coalescer({
      ...common,
      loads,
      ...(atOnce && { atOnce: (release) => this.told(atOnce.release, release) }),
      send: (batch) => backend.release(batch),
    });
  }

  /** The answer to a claim without a flight, where the backend has it at once; `undefined`: submit it. */
  acquireAtOnce(claim: Claim, nowMonoMs: number): ClaimAnswer | undefined {
    return this.acquires.answerAtOnce(this.partition(claim.key), claim, nowMonoMs);
  }

  acquire(claim: Claim, sink: Sink<ClaimAnswer>): Submitted {
    const { key, ttlMs } = claim;
    // A grant that comes after its own deadline is of no use; until then it is.
    const timeoutMs = Math.min(LONGEST_FLIGHT_MS, trustMs(ttlMs));
    return this.acquires.submit(this.partition(key), key, claim, timeoutMs, sink);
  }

  /** `leaseTtlMs`: the ttl of the lease that is renewed; an extension may ask for more. */
  renew(renewal: Renewal, leaseTtlMs: number): Promise<Landing<RenewAnswer>> {
    const { key } = renewal;
    return new Promise((resolve) => {
      this.renewals.submit(this.partition(key), key, renewal, flightMs(leaseTtlMs), resolve);
    });
  }

  /** The same for a release. */
  releaseAtOnce(release: Release, nowMonoMs: number): ReleaseAnswer | undefined {
    return this.releases.answerAtOnce(this.partition(release.key), release, nowMonoMs);
  }

  release(release: Release, ttlMs: number, sink: Sink<ReleaseAnswer>): void {
    const { key } = release;
    const timeoutMs = Math.min(flightMs(ttlMs), LONGEST_RELEASE_MS);
    this.releases.submit(this.partition(key), key, release, timeoutMs, sink);
  }

  /** Asked as it is: questions are rare, and nothing is lost by asking twice. */
  inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    return this.outage.guarded(() => this.backend.inspect(query));
  }

  /** Not where a policy or the event loop has a say first. A release needs neither: its claim had them. */
  private claimed(atOnce: AtOnce, claim: Claim, nowMonoMs: number): ClaimAnswer | undefined {
    if (!this.outage.isQuiet || !this.turn.lasts(nowMonoMs)) return undefined;
    return this.told(atOnce.acquire, claim);
  }

  /** What throws has failed, as a flight does. */
  private told<Op extends Claim | Release, A extends ClaimAnswer | ReleaseAnswer>(
    ask: (op: Op) => A | undefined,
    op: Op,
  ): A | Failed | undefined {
    let answer: A | Failed | undefined;
    try {
      answer = ask(op);
    } catch (cause) {
      answer = { status: 'failed', cause };
    }
    if (answer?.status === 'failed') this.outage.failed(answer.cause, this.partition(op.key));
    else if (answer !== undefined && this.outage.isDown) this.outage.answered(this.partition(op.key));
    return answer;
  }

  private partition(key: string): string {
    return this.backend.partition?.(key) ?? '';
  }

  private watch(landing: AnyLanding, partition: string): void {
    if (!landing.ok) this.outage.failed(landing.cause, partition);
    else if (landing.answer.status === 'failed') this.outage.failed(landing.answer.cause, partition);
    else this.outage.answered(partition);
  }
}

type AnyLanding = Landing<ClaimAnswer | RenewAnswer | ReleaseAnswer>;

/** A hung flight is given up early enough for the lease to be asked for again. */
function flightMs(ttlMs: number): number {
  return Math.min(LONGEST_FLIGHT_MS, ttlMs / 3);
}
