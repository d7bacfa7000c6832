/**
 * This process as a node: a lock of its own, held for as long as it lives, and an announcement in the run store that
 * others can read. An announcement never outlives its lock: it ends, unrenewed, before the lease of the lock could.
 * So whoever finds live nodes whose locks are all free looks at another lock backend than they do.
 */
import type { NodeRecord } from '../../port/run-store.js';
import type { Timer } from '../../port/clock.js';
import { GuardError } from '../../value/error.js';
import { fullKey } from '../../value/key.js';
import { closedError } from '../lock/lock-errors.js';
import type { HeldLock } from '../lock/lock-service.js';
import { pause } from '../flight/pause.js';
import { emit, type RunHost } from './run-host.js';

const LOCK_TTL_MS = 30_000;
/** The lock is renewed at a third of its ttl, so at least this of its lease is left when a process dies. */
const LOCK_LEFT_MS = 20_000;
const LONGEST_PERIOD_MS = 5_000;
/** Announcements that may be missed before a node counts as gone. */
const MISSED = 3;
/** Nodes whose locks are looked at, to tell whether this node sees the same backend. */
const MAX_PEERS = 100;

/** Presence of one node. */
export class NodePresence {
  private readonly periodMs: number;
  private readonly startedAtMs: number;
  private lock: HeldLock | undefined;
  private timer: Timer | undefined;
  private gone = false;
  private missedInARow = 0;
  private beating: Promise<void> = Promise.resolve();

  /** `tasks` are the names that this node sweeps for. */
  constructor(
    private readonly host: RunHost,
    private readonly tasks: () => readonly string[],
  ) {
    this.periodMs = Math.min(LONGEST_PERIOD_MS, Math.ceil(host.sweepIntervalMs / 2));
    this.startedAtMs = host.time.estimate();
  }

  /** Announcements in a row that failed, or that the node could not make because its lock was lost. */
  get missed(): number {
    return this.missedInARow;
  }

  /** Whether the lock by which it is announced is not its own for now. */
  get lacksLock(): boolean {
    return this.lock?.isHeld() !== true;
  }

  /** Whether others count this node as gone: then it begins nothing by itself. */
  get isMissing(): boolean {
    return this.missedInARow >= MISSED;
  }

  /**
   * Takes the node's lock, compares backends with the other nodes, and announces itself.
   *
   * @throws GuardError `backend-mismatch`, `unavailable`.
   */
  async begin(): Promise<void> {
    await this.takeLock();
    try {
      await this.compareBackends();
      await this.host.book.repeated('announcing a node', {}, () => this.announce());
      this.schedule();
    } catch (error) {
      await this.end();
      throw error;
    }
  }

  /** Takes the announcement back, then the lock. Never throws: both end by themselves. */
  async end(): Promise<void> {
    this.gone = true;
    this.timer?.cancel();
    await this.beating;
    const { book, namespace, node } = this.host;
    await book.asked((store) => store.removeNode(namespace, node.id)).catch(() => undefined);
    await this.lock?.release();
  }

  private async takeLock(): Promise<void> {
    const { locks, namespace, node, shutdown } = this.host;
    const outcome = await locks.claim({
      key: fullKey(namespace, 'node', node.id),
      shownKey: `@guard/node/${node.id}`,
      ttlMs: LOCK_TTL_MS,
      waitMs: 0,
      renewMs: LOCK_TTL_MS / 3,
      signal: shutdown.signal,
    });
    if (outcome.status !== 'granted') {
      throw new GuardError('unavailable', `the lock of node ${node.id} is held by somebody else`);
    }
    if (!this.gone) this.lock = outcome.lock;
    else await outcome.lock.release();
  }

  /** Refuses a lock backend on which none of the other live nodes is to be found. */
  private async compareBackends(): Promise<void> {
    if (!(await this.seesNobody())) return;
    // A backend that lost its locks a moment ago looks the same, until its nodes take theirs again.
    await pause(this.host.clock, LONGEST_PERIOD_MS + 1_000, this.host.stopSignal);
    if (this.host.stopSignal.aborted) throw closedError();
    if (!(await this.seesNobody())) return;
    const { locks, book } = this.host;
    throw new GuardError(
      'backend-mismatch',
      `other nodes are announced in ${book.store.name}, but none of them holds its lock in ${locks.backendName}: ` +
        `this node sees another lock backend than they do`,
    );
  }

  private async seesNobody(): Promise<boolean> {
    const { book, locks, namespace, node } = this.host;
    const nodes = await book.repeated('listing nodes', {}, () =>
      book.asked((store) => store.nodes(namespace)),
    );
    const others = nodes.filter(({ id }) => id !== node.id).slice(0, MAX_PEERS);
    if (others.length === 0) return false;
    const infos = await locks.inspect(others.map(({ lockKey }) => lockKey));
    return infos.every(({ held }) => !held);
  }

  private schedule(): void {
    if (this.gone) return;
    const beat = (): void => {
      this.beating = this.beat();
    };
    this.timer = this.host.clock.setTimer(beat, this.periodMs, { ref: false });
  }

  private async beat(): Promise<void> {
    try {
      this.missedInARow += 1;
      if (this.lacksLock) await this.takeLockAgain();
      // Without the lock there is nothing to announce; the old announcement runs out.
      if (!this.lacksLock) {
        await this.announce();
        this.missedInARow = 0;
      }
    } catch (error) {
      if (!this.gone) emit(this.host, 'error', { error, during: 'announcing this node' });
    }
    this.schedule();
  }

  private async takeLockAgain(): Promise<void> {
    await this.lock?.release();
    await this.takeLock();
  }

  private announce(): Promise<void> {
    const { book, locks, namespace, node } = this.host;
    const tasks = this.tasks();
    const schedules = tasks.flatMap((name) => {
      const hash = this.host.tasks.get(name)?.schedule?.definition.hash;
      return hash === undefined ? [] : [[name, hash] as const];
    });
    const record: NodeRecord = {
      id: node.id,
      label: node.label,
      lockKey: fullKey(namespace, 'node', node.id),
      backend: locks.backendName,
      startedAtMs: this.startedAtMs,
      tasks,
      ...(schedules.length === 0 ? {} : { schedules: Object.fromEntries(schedules) }),
    };
    const ttlMs = Math.min(this.periodMs * MISSED, LOCK_LEFT_MS - LONGEST_PERIOD_MS);
    return book.asked((store) => store.putNode(namespace, record, ttlMs));
  }
}
