import type { LockBackend, LockInfo, StateStore } from '@guard/core';
import { failureOf, findLeftovers, VirtualClock } from '@guard/testing';

const info = (key: string, held: boolean, waiting: number): LockInfo => ({ key, held, waiting, token: 1n });
const infos: Record<string, LockInfo> = {
  free: info('free', false, 0),
  held: info('held', true, 0),
  queued: info('queued', false, 2),
};
const locks = {
  inspect: ({ keys }: { keys: string[] }) => Promise.resolve(keys.map((key) => infos[key]!)),
} as unknown as LockBackend;

const pages: Record<string, { entries: { key: string }[]; cursor?: string }> = {
  first: { entries: [{ key: 'p/1' }], cursor: 'second' },
  second: { entries: [{ key: 'p/2' }] },
};
const state = {
  scan: (_prefix: string, cursor = 'first') => Promise.resolve(pages[cursor]),
} as unknown as StateStore;

describe('findLeftovers', () => {
  it('finds held locks and tickets', async () => {
    expect(await findLeftovers({ locks, keys: ['free'] })).toEqual([]);
    expect(await findLeftovers({ locks, keys: ['free', 'held', 'queued'] })).toEqual([
      'lock held: held, 0 waiting',
      'lock queued: free, 2 waiting',
    ]);
  });

  it('finds entries on every page', async () => {
    expect(await findLeftovers({ state, prefix: 'p/' })).toEqual(['entry p/1', 'entry p/2']);
  });

  it.each<[object | undefined, string]>([
    [undefined, 'query must be an object'],
    [{}, 'must name locks, state or a clock'],
    [{ lock: locks }, "no option 'lock'"],
    [{ locks }, 'query.keys must be given with query.locks'],
    [{ keys: ['held'] }, 'query.keys must be given with query.locks'],
    [{ locks: {}, keys: [] }, 'query.locks must be a LockBackend'],
    [{ state, locks, keys: 'held' }, 'query.keys must be an array'],
    [{ locks, keys: [] }, 'query.keys must name at least one lock'],
    [{ locks, keys: ['held', undefined] }, 'query.keys[1] must be a text'],
    [{ state, prefix: 1 }, 'query.prefix must be a text'],
    [{ prefix: 'p/' }, 'query.prefix must be given with query.state'],
    [{ clock: {} }, 'query.clock must be a VirtualClock'],
  ])('does not pass for an answer what it did not look at: %j', async (query, message) => {
    const refused = await failureOf(findLeftovers(query as never));
    expect(refused.code).toBe('invalid-argument');
    expect(refused.message).toContain(message);
  });

  it('finds timers that keep the process alive, and leaves the others alone [L5]', async () => {
    const clock = new VirtualClock();
    clock.setTimer(() => undefined, 10, { ref: false });
    expect(await findLeftovers({ clock })).toEqual([]);
    clock.setTimer(() => undefined, 10);
    expect(await findLeftovers({ clock })).toEqual(['1 timers that keep the process alive']);
  });
});
