/** What a watch tells, from messages that only say that a key was written: here doubled, late, missing, or in vain. */
import { memoryState, StateFeed, type StateChange } from '@guard/core';
import { VirtualClock } from '@guard/testing';

const PREFIX = 'ns/state/';

class Stage {
  readonly clock = new VirtualClock();
  readonly store = memoryState({ clock: this.clock });
  readonly told: StateChange[] = [];
  /** So many calls of the store are refused. */
  refusals = 0;
  #writes = 0;
  readonly feed = new StateFeed({
    store: {
      read: (keys) => this.#call(() => this.store.read(keys)),
      scan: (...query) => this.#call(() => this.store.scan(...query)),
    },
    clock: this.clock,
    prefix: PREFIX,
    listener: (change) => void this.told.push(change),
  });

  async set(key: string, value: string | null): Promise<void> {
    const writeId = `w${(this.#writes += 1)}`;
    await this.store.write([{ key: PREFIX + key, value, expect: 'any', writeId, ttl: 'none' }]);
  }

  says(...keys: string[]): Promise<void> {
    this.feed.wrote(keys.map((key) => PREFIX + key));
    return this.rest();
  }

  rest(): Promise<void> {
    return this.clock.advance(1);
  }

  values(): (string | null)[] {
    return this.told.map(({ entry }) => entry?.value ?? null);
  }

  async #call<T>(call: () => Promise<T>): Promise<T> {
    this.refusals -= 1;
    if (this.refusals >= 0) throw new Error('not now');
    return call();
  }
}

describe('A feed of changes', () => {
  it('tells what the store holds when it looks: messages that are quick, doubled or late merge', async () => {
    const stage = new Stage();
    await stage.feed.start();
    for (const value of ['1', '2', '3']) await stage.set('a', value);
    await stage.says('a', 'a', 'a');
    expect(stage.values()).toEqual(['3']);
    await stage.set('a', null);
    await stage.says('a');
    expect(stage.values()).toEqual(['3', null]);
  });

  it('tells nothing of keys without its prefix, nor of what was there when it began', async () => {
    const stage = new Stage();
    await stage.set('old', '1');
    await stage.feed.start();
    stage.feed.wrote(['ns/other/a']);
    await stage.rest();
    expect(stage.told).toEqual([]);
  });

  it('tells after a gap what was written in it and what was deleted, and nothing that did not change', async () => {
    const stage = new Stage();
    for (const key of ['same', 'changed', 'gone']) await stage.set(key, key);
    await stage.feed.start();
    await stage.set('changed', 'new');
    await stage.set('gone', null);
    await stage.set('made', 'made');
    stage.feed.gap();
    await stage.rest();
    const told = stage.told.map(({ key, entry }) => [key.slice(PREFIX.length), entry?.value ?? null]);
    expect(told.sort()).toEqual([
      ['changed', 'new'],
      ['gone', null],
      ['made', 'made'],
    ]);
  });

  it('asks a store again that could not be asked, half a second later, and loses nothing by it', async () => {
    const stage = new Stage();
    await stage.feed.start();
    stage.refusals = 3;
    await stage.set('a', '1');
    await stage.says('a');
    expect(stage.told).toEqual([]);
    await stage.clock.advance(450);
    await stage.set('b', '2');
    await stage.says('b');
    expect(stage.told).toEqual([]);
    await stage.clock.advance(1_200);
    expect(stage.values().sort()).toEqual(['1', '2']);
  });

  it('tells nothing after it was closed, also of what it was reading then', async () => {
    const stage = new Stage();
    await stage.feed.start();
    await stage.set('a', '1');
    stage.feed.wrote([`${PREFIX}a`]);
    stage.feed.close();
    await stage.rest();
    stage.feed.gap();
    await stage.clock.advance(1_000);
    expect(stage.told).toEqual([]);
  });
});
