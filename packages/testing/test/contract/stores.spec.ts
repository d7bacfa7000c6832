import { kvRuns, memoryState, type RunStore, type StateStore } from '@guard/core';
import { describeRunStore, describeStateStore, VirtualClock } from '@guard/testing';
import { failures, runSuite, type Outcome } from './support.js';

type StateDefect = (inner: StateStore) => Partial<StateStore>;
type RunDefect = (inner: RunStore) => Partial<RunStore>;

/** An object that passes every call on, except for what the defect replaces. */
function withDefect<T extends object>(inner: T, defect: Partial<T>): T {
  return new Proxy(inner, {
    get: (target, name) => {
      const own: unknown = Reflect.get(name in defect ? defect : target, name);
      return typeof own === 'function' && !(name in defect) ? own.bind(target) : own;
    },
  });
}

function runStateWith(defect: StateDefect, part = ''): Promise<Outcome> {
  const create = async () => {
    const clock = new VirtualClock();
    const inner = memoryState({ clock });
    const store = withDefect(inner, defect(inner));
    return { store, connect: async () => store, clock, cleanup: () => inner.close() };
  };
  const { traits } = memoryState();
  return runSuite(
    (runner) => describeStateStore({ runner, name: 'with a defect', traits, virtualTime: true, create }),
    'state store',
    part,
  );
}

function runRunsWith(defect: RunDefect, part = ''): Promise<Outcome> {
  const create = async () => {
    const clock = new VirtualClock();
    const inner = kvRuns(memoryState({ clock }));
    const store = withDefect(inner, defect(inner));
    return { store, connect: async () => store, clock, cleanup: () => inner.close() };
  };
  const { traits } = kvRuns(memoryState());
  return runSuite(
    (runner) => describeRunStore({ runner, name: 'with a defect', traits, virtualTime: true, create }),
    'run store',
    part,
  );
}

let fresh = 0;

const STATE_DEFECTS: readonly [what: string, defect: StateDefect, found: string][] = [
  [
    'forgets write ids',
    (inner) => ({
      write: (writes) => inner.write(writes.map((write) => ({ ...write, writeId: `fresh ${(fresh += 1)}` }))),
    }),
    '[S4] answers a re-sent write with the version',
  ],
  [
    'takes no notice of fences',
    (inner) => ({ write: (writes) => inner.write(writes.map(({ fence: _fence, ...write }) => write)) }),
    '[B04] refuses a write under a smaller token',
  ],
  [
    'compares fences as doubles',
    (inner) => ({
      write: (writes) =>
        inner.write(
          writes.map(({ fence, ...write }) =>
            fence === undefined
              ? write
              : { ...write, fence: { ...fence, token: BigInt(Number(fence.token)) } },
          ),
        ),
    }),
    'compares tokens as numbers',
  ],
  [
    'drops the ttl on a write that keeps it',
    (inner) => ({
      write: (writes) =>
        inner.write(writes.map((write) => ({ ...write, ttl: write.ttl === 'keep' ? 'none' : write.ttl }))),
    }),
    '[B177] keeps the remaining time',
  ],
  [
    'normalises values',
    (inner) => ({
      write: (writes) =>
        inner.write(
          writes.map((write) =>
            write.value === null ? write : { ...write, value: JSON.stringify(JSON.parse(write.value)) },
          ),
        ),
    }),
    'exactly the text that was written',
  ],
  [
    'overwrites whatever is there',
    (inner) => ({
      write: (writes) => inner.write(writes.map((write) => ({ ...write, expect: 'any' as const }))),
    }),
    'writes over exactly the version it expects',
  ],
  [
    'ends a listing after its first page',
    (inner) => ({
      scan: async (prefix, cursor, limit) => ({ entries: (await inner.scan(prefix, cursor, limit)).entries }),
    }),
    '[B179] pages through many entries',
  ],
  [
    'takes the underscore of a prefix for any character',
    (inner) => ({
      scan: async (prefix, cursor, limit) => {
        const all = await inner.scan(prefix.split('_')[0]!, cursor, 100_000);
        const escaped = prefix.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&');
        const pattern = new RegExp(`^${escaped.replaceAll('_', '.')}`, 's');
        return { entries: all.entries.filter(({ key }) => pattern.test(key)).slice(0, limit) };
      },
    }),
    '[B179] takes a prefix for exactly these bytes',
  ],
  [
    'never tells a watcher',
    (inner) => ({ watch: (prefix) => inner.watch(prefix, () => undefined) }),
    'delivers the newest value',
  ],
  [
    'cuts large values',
    (inner) => ({
      read: async (keys) =>
        (await inner.read(keys)).map((entry) => entry && { ...entry, value: entry.value.slice(0, 65_535) }),
    }),
    '[B183] keeps values up to a mebibyte',
  ],
];

const RUN_DEFECTS: readonly [what: string, defect: RunDefect, found: string][] = [
  [
    'moves a record whatever its version',
    (inner) => ({
      transition: async (namespace, _expected, next, event) => {
        const stored = await inner.get(namespace, next);
        return inner.transition(namespace, stored?.version ?? '0', next, event);
      },
    }),
    '[B132] [S7] refuses a stale node’s finish',
  ],
  [
    'shares records between namespaces',
    (inner) => ({ create: (_namespace, run, event) => inner.create('all', run, event) }),
    'keeps namespaces apart',
  ],
  [
    'tells the history backwards',
    (inner) => ({ events: async (namespace, ref) => [...(await inner.events(namespace, ref))].reverse() }),
    'keeps the history of a run, oldest first',
  ],
  [
    'finds pending runs before they are due',
    (inner) => ({ due: (namespace, query) => inner.due(namespace, { ...query, overdueMs: -1e9 }) }),
    'finds running runs',
  ],
  [
    'removes keys together with records',
    (inner) => ({
      prune: (namespace, query) => inner.prune(namespace, { ...query, keysBeforeMs: query.recordsBeforeMs }),
    }),
    '[S7] prunes content first and keys later',
  ],
  [
    'lets every change of a task win',
    (inner) => ({
      putTask: async (namespace, _expected, next) =>
        inner.putTask(namespace, (await inner.task(namespace, next.task))?.version ?? null, next),
    }),
    'changes it by compare-and-set',
  ],
  [
    'shows nodes for ever',
    (inner) => ({ putNode: (namespace, node) => inner.putNode(namespace, node, 1e9) }),
    'shows nodes as long as they are announced',
  ],
];

describe('describeStateStore', () => {
  it('passes the memory store, whole but for an end that one object of all does not have', async () => {
    const outcome = await runStateWith(() => ({}));
    expect(failures(outcome)).toEqual([]);
    expect(outcome.skipped).toEqual([expect.stringMatching(/^ends watches when it is closed.*\(skipped: /)]);
    expect(outcome.passed.length).toBeGreaterThan(45);
  });

  it.each(STATE_DEFECTS)('finds a store that %s', async (_what, defect, found) => {
    expect(failures(await runStateWith(defect, found))).toEqual([expect.stringContaining(found)]);
  });
});

describe('describeRunStore', () => {
  it('passes the store on memory, whole', async () => {
    const outcome = await runRunsWith(() => ({}));
    expect([failures(outcome), outcome.skipped]).toEqual([[], []]);
    expect(outcome.passed.length).toBeGreaterThan(25);
  });

  it.each(RUN_DEFECTS)('finds a store that %s', async (_what, defect, found) => {
    expect(failures(await runRunsWith(defect, found))).toEqual([expect.stringContaining(found)]);
  });
});
