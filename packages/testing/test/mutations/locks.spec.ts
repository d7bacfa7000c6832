/** Takes single mechanisms of locks and state out of the core, and expects the simulator to notice each. */
import { kill, type Mutant } from './killing.js';
import { mutatedCore } from './mutated-core.js';

const LIMIT_MS = 300_000;

const NAMED: readonly Mutant[] = [
  {
    title: 'the deadline of a grant is counted from the reply',
    file: 'runtime/lock/pending-claim.ts',
    find: "return this.apply({ type: 'granted', token: answer.token, sentAt, now });",
    replace: "return this.apply({ type: 'granted', token: answer.token, sentAt: now, now });",
    breaks: ['L1', 'S1'],
  },
  {
    title: 'the deadline of a renewal is counted from the reply',
    file: 'runtime/lock/held-lock.ts',
    find: 'const trust = { sentAt: landing.sentAt,',
    replace: 'const trust = { sentAt: now,',
    breaks: ['L1', 'S1'],
  },
  {
    title: 'the owner check of a renewal is removed',
    file: 'memory/locks.ts',
    find: 'if (held === undefined || !names(renewal, held.grant)) return LOST;',
    replace: 'if (held === undefined) return LOST;',
    breaks: ['S3'],
  },
  {
    title: 'a release is retried against a newer grant',
    file: 'memory/locks.ts',
    find: 'if (held === undefined || !names(ref, held.grant)) return LOST;',
    replace: 'if (held === undefined) return LOST;',
    breaks: ['S3', 'S5'],
  },
  {
    title: 'the token is reset when a key is free',
    file: 'memory/locks.ts',
    find: '(held as Entry).grant = undefined;',
    replace: '(held as Entry).grant = undefined;\n    this.#largest = 0n;',
    breaks: ['S2'],
  },
  {
    title: 'the ticket of a wait that is over is not cancelled',
    file: 'machine/claim.ts',
    find: 'return { ...end(outcome), cancel: true };',
    replace: 'return end(outcome);',
    breaks: ['S4'],
  },
  {
    title: 'the ticket of an aborted wait is not cancelled',
    file: 'machine/claim.ts',
    find: 'return { ...end({ end: reason }), cancel: true };',
    replace: 'return end({ end: reason });',
    breaks: ['S4'],
  },
  {
    title: 're-sent acquire does not re-date the lease',
    file: 'memory/locks.ts',
    find: 'grant.untilMs = Math.max(grant.untilMs, now.monoMs + claim.ttlMs);',
    replace: '',
    breaks: ['S1'],
  },
  {
    title: 'a hand-over is believed for a full ttl',
    file: 'machine/claim.ts',
    find: 'const trust = { sentAt: view.sentAt, trustMs: trustMs(plan.ticketTtlMs) };',
    replace: 'const trust = { sentAt: view.sentAt, trustMs: trustMs(plan.ttlMs) };',
    breaks: ['S1', 'L1'],
    firstSeed: 181,
  },
  {
    title: 'a notice older than the ticket is believed',
    file: 'machine/claim.ts',
    find: 'if (view === undefined || token <= view.minted) return { state };',
    replace: 'if (view === undefined) return { state };',
    breaks: ['S1'],
    firstSeed: 966,
  },
  {
    title: 'an extension shortens the lease in the backend',
    file: 'memory/locks.ts',
    find: 'held.grant.untilMs = Math.max(held.grant.untilMs, now.monoMs + renewal.ttlMs);',
    replace: 'held.grant.untilMs = now.monoMs + renewal.ttlMs;',
    breaks: ['S5'],
  },
  {
    title: 'a renewal shortens an extension in the handle',
    file: 'machine/lease.ts',
    find: 'return b.sentAt.monoMs + b.trustMs > a.sentAt.monoMs + a.trustMs ? b : a;',
    replace: 'return b;',
    breaks: ['S5'],
  },
];

const OTHERS: readonly Mutant[] = [
  {
    title: 'an expired lease is revived by its late renewal',
    file: 'memory/locks.ts',
    find: 'const held = this.#settle(renewal.key, now);',
    replace: 'const held = this.#entries.get(renewal.key);',
    breaks: ['S5'],
  },
  {
    title: 'a tombstone refuses nothing',
    file: 'memory/locks.ts',
    find: 'if (this.#tombstones.size > 0 && this.#tombstones.covers(claim.id, now.monoMs)) return CANCELLED;',
    replace: '',
    breaks: ['S4'],
  },
  {
    title: 'the margin is on the wrong side',
    file: 'machine/claim.ts',
    find: 'return ttlMs - marginMs(ttlMs);',
    replace: 'return ttlMs + marginMs(ttlMs);',
    breaks: ['L1', 'S1'],
  },
  {
    title: 'the wall clock is not asked',
    file: 'value/instant.ts',
    find: "return now.wallMs >= since.wallMs + durationMs ? 'doubtful' : 'before';",
    replace: "return 'before';",
    breaks: ['S1', 'L1'],
  },
  {
    title: 'the backend says "lost", and the holder goes on',
    file: 'runtime/lock/held-lock.ts',
    find: "this.step({ type: 'refused' });\n    } else {",
    replace: 'this.failures += 1;\n    } else {',
    breaks: ['L1', 'S1'],
  },
  {
    title: 'no timer is set for the deadline',
    file: 'runtime/lock/held-lock.ts',
    find: 'const next = this.wantsRenewal() ? Math.min(deadline, this.renewDueMonoMs) : deadline;',
    replace: 'const next = this.wantsRenewal() ? this.renewDueMonoMs : deadline + 60_000;',
    breaks: ['L1'],
  },
  {
    title: 'a wait goes on beyond its end',
    file: 'runtime/lock/pending-claim.ts',
    find: 'this.host.waits.schedule(this, startedAt.monoMs + this.request.waitMs);',
    replace: 'this.host.waits.schedule(this, startedAt.monoMs + 2 * this.request.waitMs);',
    breaks: ['L3'],
  },
  {
    title: 'a fault of a try is told as busy',
    file: 'machine/claim.ts',
    find: 'const spentBudget = event.now.monoMs',
    replace: "if (!plan.waits) return end({ end: 'busy' });\n  const spentBudget = event.now.monoMs",
    breaks: ['S6'],
  },
  {
    title: 'nobody refreshes the tickets of a process whose first claim left',
    file: 'runtime/lock/key-queue.ts',
    find: 'if (this.slot < 0) this.scheduleNext();',
    replace: '',
    breaks: ['L3'],
    firstSeed: 700,
  },
  {
    title: 'what a request brings that a message overtook is kept',
    file: 'runtime/lock/pending-claim.ts',
    find: "if (this.state.phase === 'done') return this.overtaken(landing);",
    replace: "if (this.state.phase === 'done') return;",
    breaks: ['S4', 'L5'],
  },
  {
    title: 'the late answer of a refresh takes away the lock that a message brought',
    file: 'runtime/lock/pending-claim.ts',
    find: "(answer.status === 'queued' && answer.minted >= this.grantedToken)",
    replace: "answer.status === 'queued'",
    breaks: ['S1'],
    faults: ['delay', 'notices'],
  },
  {
    title: 'two requests for one key are in flight',
    file: 'runtime/flight/coalescer.ts',
    find: 'else tail.next = entry;',
    replace: 'else this.queue.push(entry);',
    breaks: ['port'],
  },
  {
    title: 'a write of an older holder passes the fence',
    file: 'memory/state.ts',
    find: 'return last.fence.token > fence.token ? last.fence.token : undefined;',
    replace: 'return undefined;',
    breaks: ['fence'],
    faults: ['pause', 'delay', 'repeat'],
  },
  {
    title: 'a re-sent write does not recognise itself',
    file: 'memory/state.ts',
    find: "if (last?.writeId === write.writeId) return { status: 'written', version: last.version };",
    replace: '',
    breaks: ['S4', 'S6'],
  },
  {
    title: 'a write under a lock does not ask whether it is held',
    file: 'runtime/state/states.ts',
    find: 'await allowedOrDoubt(stillAllowed, failures > 0);',
    replace: '',
    breaks: ['fence'],
  },
  {
    title: 'a conflict of a re-sent write is told as somebody else’s',
    file: 'runtime/state/states.ts',
    find: "if (answer.status !== 'conflict' || !(resent || answer.resent)) return answer;",
    replace: 'return answer;',
    breaks: ['S4'],
    faults: ['loss', 'repeat', 'delay'],
    firstSeed: 321,
  },
];

describe('a lock without one of its mechanisms', () => {
  it.each(NAMED)('is found out where $title', (mutant) => kill(mutant), LIMIT_MS);
  it.each(OTHERS)('is found out, too, where $title', (mutant) => kill(mutant), LIMIT_MS);
});

describe('a mutation', () => {
  it('whose place is not there fails', () => {
    const gone = { file: 'machine/claim.ts', find: 'no such text', replace: '' };
    expect(() => mutatedCore(gone)).toThrow('has 0 places');
  });
});
