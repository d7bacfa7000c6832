import type { StateChange, StateStore, StateWrite } from '@guard/core';
import { faultyState, PlayedFaultError, VirtualClock } from '@guard/testing';

/** A store that takes everything and tells its watchers. */
function generous() {
  const executed: string[] = [];
  const watchers = new Set<(change: StateChange) => void>();
  const note = <A>(what: string, answer: A): Promise<A> => {
    executed.push(what);
    return Promise.resolve(answer);
  };
  const inner: StateStore = {
    name: 'generous',
    traits: { maxBatch: 10, push: true },
    now: () => note('now', 5),
    read: (keys) =>
      note(
        `read ${keys.join(' ')}`,
        keys.map(() => null),
      ),
    write: (writes) =>
      note(
        `write ${writes.map(({ key }) => key).join(' ')}`,
        writes.map(({ writeId }) => ({ status: 'written', version: writeId }) as const),
      ),
    scan: (prefix) => note(`scan ${prefix}`, { entries: [] }),
    watch: (_prefix, listener) => {
      watchers.add(listener);
      return Promise.resolve({ close: () => Promise.resolve(void watchers.delete(listener)) });
    },
    close: () => note('close', undefined),
  };
  const change = (key: string, value: string): void =>
    watchers.forEach((tell) => tell({ key, entry: { key, value, version: value } }));
  return { inner, executed, change };
}

const put = (key: string): StateWrite => ({
  key,
  value: '1',
  expect: 'any',
  writeId: `w-${key}`,
  ttl: 'keep',
});

describe('faultyState', () => {
  it('is the wrapped store as long as no fault is played', async () => {
    const { inner, executed } = generous();
    const { store, plan } = faultyState(inner);
    expect(await store.now()).toBe(5);
    expect(await store.read(['a', 'b'])).toEqual([null, null]);
    expect(await store.write([put('a')])).toEqual([{ status: 'written', version: 'w-a' }]);
    expect(await store.scan('p', undefined, 10)).toEqual({ entries: [] });
    await store.close();
    expect(executed).toEqual(['now', 'read a b', 'write a', 'scan p']);
    expect([plan.traffic('read').operations, plan.total().calls]).toEqual([2, 4]);
  });

  it('fails single writes and loses single replies', async () => {
    const clock = new VirtualClock();
    const { inner, executed } = generous();
    const faulty = faultyState(inner, { clock });
    const failing = faulty.plan.play({
      type: 'fail',
      executed: false,
      operations: (one) => (one as StateWrite).key === 'a',
    });
    const answers = await faulty.store.write([put('a'), put('b')]);
    expect(answers.map(({ status }) => status)).toEqual(['failed', 'written']);
    failing.stop();
    const lost = faulty.loseReply('write');
    let settled = false;
    void faulty.store.write([put('c')]).finally(() => (settled = true));
    await clock.advance(1_000);
    expect([settled, lost.met, executed]).toEqual([false, 1, ['write b', 'write c']]);
  });

  it('goes down and comes back; watchers then hear the newest value of what they missed', async () => {
    const { inner, change } = generous();
    const faulty = faultyState(inner);
    const heard: string[] = [];
    await faulty.store.watch('p', ({ key, entry }) => heard.push(`${key}=${entry?.value}`));
    change('p1', 'before');
    faulty.down();
    await expect(faulty.store.read(['a'])).rejects.toThrow(PlayedFaultError);
    await expect(faulty.store.now()).rejects.toThrow('the server is away');
    change('p1', 'first');
    change('p1', 'second');
    change('p2', 'only');
    expect(heard).toEqual(['p1=before']);
    faulty.heal();
    change('p1', 'after');
    expect(heard).toEqual(['p1=before', 'p1=second', 'p2=only', 'p1=after']);
    expect(await faulty.store.now()).toBe(5);
  });

  it('cuts: nothing is executed, nobody answers', async () => {
    const clock = new VirtualClock();
    const { inner, executed } = generous();
    const faulty = faultyState(inner, { clock });
    faulty.cut();
    let settled = false;
    void faulty.store.scan('p', undefined, 1).finally(() => (settled = true));
    await clock.advance(1_000);
    expect([settled, executed]).toEqual([false, []]);
  });

  it('tells a closed watch nothing', async () => {
    const { inner, change } = generous();
    const faulty = faultyState(inner);
    const heard: string[] = [];
    const watch = await faulty.store.watch('p', ({ key }) => heard.push(key));
    faulty.cut();
    change('p1', 'x');
    await watch.close();
    faulty.heal();
    expect(heard).toEqual([]);
  });
});
