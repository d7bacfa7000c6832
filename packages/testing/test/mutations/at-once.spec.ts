/** Takes mechanisms of the short cut, by which a backend in this process answers at once, out of the core. */
import { kill, type Mutant } from './killing.js';

const LIMIT_MS = 300_000;

const MUTANTS: readonly Mutant[] = [
  {
    title: 'an operation passes by one that is in flight on its key',
    file: 'runtime/flight/coalescer.ts',
    find: 'if (atOnce === undefined || this.lanes.get(partition)?.isIdle === false) return undefined;',
    replace: 'if (atOnce === undefined) return undefined;',
    breaks: ['port'],
  },
  {
    title: 'a grant at once is believed for its whole lease, without a margin',
    file: 'machine/claim.ts',
    find: 'trust: { sentAt, trustMs: trustMs(ttlMs) }, handedOver: false };',
    replace: 'trust: { sentAt, trustMs: ttlMs }, handedOver: false };',
    breaks: ['S1', 'L1'],
  },
  {
    title: 'a token that went back is taken, where it comes at once',
    file: 'runtime/lock/locks.ts',
    find: "if (answer?.status === 'granted' && this.seen.saw(request.key, answer.token)) {",
    replace: "if (answer?.status === 'granted') {",
    breaks: ['S2'],
    beyondAssumptions: true,
    firstSeed: 361,
  },
  {
    title: 'a ticket that was made at once is forgotten, and nobody refreshes it',
    file: 'runtime/lock/pending-claim.ts',
    find: 'else this.landed({ ok: true, answer, sentAt: startedAt });',
    replace: '',
    breaks: ['L3', 'S4', 'S6'],
  },
  {
    title: 'a release that failed at once counts as done',
    file: 'runtime/lock/release-task.ts',
    find: "if (answer.status !== 'failed') return ended(host, lease, answered(lease, answer, now));",
    replace:
      "if (answer.status === 'failed') return ended(host, lease, { type: 'release-answered', answer: 'released' });\n    return ended(host, lease, answered(lease, answer, now));",
    breaks: ['S6', 'S4'],
    faults: ['loss'],
  },
];

describe('the short cut without one of its mechanisms', () => {
  it.each(MUTANTS)('is found out where $title', (mutant) => kill({ atOnce: true, ...mutant }), LIMIT_MS);
});
