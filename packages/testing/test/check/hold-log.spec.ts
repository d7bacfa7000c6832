import { findOverlaps, findTokenDisorder, HoldLog, VirtualClock, type HoldEvent } from '@guard/testing';

/** `'1 A enter 5'`: at 1 ms A entered key k with token 5. */
function log(...lines: string[]): HoldEvent[] {
  return lines.map((line) => {
    const [at, holder, type, token] = line.split(' ') as [string, string, HoldEvent['type'], string?];
    const event = { atMs: Number(at), type, key: 'k', holder };
    return token === undefined ? event : { ...event, token: BigInt(token) };
  });
}

describe('findOverlaps', () => {
  it('finds nothing where holders follow each other, even within one moment [S1]', () => {
    expect(findOverlaps(log('1 A enter 1', '5 A exit', '5 B enter 2', '9 B lost', '9 A enter 3'))).toEqual(
      [],
    );
  });

  it('finds two beliefs at one time, within one moment too [S1]', () => {
    expect(findOverlaps(log('1 A enter 1', '4 B enter 2', '5 A exit'))).toEqual([
      'k: B says "enter" at 4 ms beside A',
    ]);
    expect(findOverlaps(log('4 A enter 1', '4 B enter 2', '4 A exit'))).toHaveLength(1);
  });

  it('finds a belief that outlives the lost signal only if it is repeated [S1]', () => {
    expect(findOverlaps(log('1 A enter 1', '3 A lost', '4 B enter 2'))).toEqual([]);
    expect(findOverlaps(log('1 A enter 1', '3 A lost', '4 B enter 2', '5 A held'))).toHaveLength(1);
  });

  it('lets a stopped process sleep, and convicts it when it wakes up believing [S1]', () => {
    const sleep = ['1 A enter 1', '2 A paused', '4 B enter 2'];
    expect(findOverlaps(log(...sleep, '6 A lost', '7 B exit'))).toEqual([]);
    expect(findOverlaps(log(...sleep, '6 A held', '7 B exit'))).toEqual([
      'k: A says "held" at 6 ms beside B',
    ]);
  });

  it('finds one name that is granted the lock twice, and a belief after the loss [S1]', () => {
    expect(findOverlaps(log('1 A enter 1', '2 A enter 2', '3 A exit'))).toEqual([
      'k: A says "enter" at 2 ms while it holds already',
    ]);
    expect(findOverlaps(log('1 A enter 1', '2 A lost', '3 A held'))).toEqual([
      'k: A says "held" at 3 ms after it said "lost"',
    ]);
    expect(findOverlaps(log('1 A enter 1', '2 A lost', '3 A enter 2', '4 A held'))).toEqual([]);
  });

  it('finds a belief after the release, also of one that slept [S1]', () => {
    expect(findOverlaps(log('1 A enter 1', '2 A exit', '3 A held'))).toEqual([
      'k: A says "held" at 3 ms after it said "exit"',
    ]);
    expect(findOverlaps(log('1 A enter 1', '2 A exit', '3 A paused', '4 A held'))).toHaveLength(1);
    expect(findOverlaps(log('1 A enter 1', '2 A exit', '3 A enter 2', '4 A held'))).toEqual([]);
  });

  it('keeps keys apart, and puts logs of several processes in time', () => {
    const other = log('2 B enter 1').map((event) => ({ ...event, key: 'other' }));
    expect(findOverlaps([...log('1 A enter 1', '5 A exit'), ...other])).toEqual([]);
    expect(findOverlaps([...log('1 A enter 1', '5 A exit'), ...log('3 B enter 2')])).toHaveLength(1);
  });
});

describe('findTokenDisorder', () => {
  it('wants strictly growing tokens per key [S2]', () => {
    expect(findTokenDisorder(log('1 A enter 5', '2 B enter 6', '3 A enter 100'))).toEqual([]);
    expect(findTokenDisorder(log('1 A enter 5', '2 B enter 5', '3 C enter 6'))).toEqual([
      'k: B got token 5 at 2 ms, after 5',
    ]);
    expect(findTokenDisorder(log('1 A enter 5', '2 B enter 4', '3 C enter 5'))).toHaveLength(2);
  });

  it('finds a grant without a token [S2]', () => {
    expect(findTokenDisorder(log('1 A enter 1', '2 B enter'))).toEqual(['k: B got no token at 2 ms']);
  });

  it('compares as numbers, beyond what a double holds', () => {
    expect(findTokenDisorder(log('1 A enter 9', '2 B enter 10'))).toEqual([]);
    expect(findTokenDisorder(log('1 A enter 9007199254740993', '2 B enter 9007199254740992'))).toHaveLength(
      1,
    );
  });
});

describe('HoldLog', () => {
  it('refuses a grant without a token, and a clock that is none', () => {
    expect(() => new HoldLog().enter('A', { key: 'k' } as never)).toThrow(/lock\.token must be a bigint/);
    expect(() => new HoldLog({} as never)).toThrow(/clock must be a Clock/);
  });

  it('refuses lines that nobody could have meant, which would end a belief in silence [S1]', () => {
    const holds = new HoldLog();
    expect(() => holds.add('helt' as never, 'A', 'k')).toThrow(/type must be 'held' or/);
    expect(() => holds.add('enter' as never, 'A', 'k')).toThrow(/type must be 'held' or/);
    expect(() => holds.add('held', undefined as never, 'k')).toThrow(/holder must be a text/);
    expect(() => holds.add('held', 'A', 7 as never)).toThrow(/key must be a text/);
    expect(() => holds.enter(undefined as never, { key: 'k', token: 1n })).toThrow(/holder must be a text/);
    expect(() => findOverlaps(undefined as never)).toThrow(/events must be an array/);
    expect(() => findOverlaps(log('1 A helt'))).toThrow(/events\[0\]\.type must be/);
    expect(() => findTokenDisorder(log('x A enter 1'))).toThrow(/events\[0\]\.atMs must be/);
  });

  it('stamps lines with the monotonic time and names its problems', async () => {
    const clock = new VirtualClock({ monoMs: 0 });
    const holds = new HoldLog(clock);
    holds.enter('A', { key: 'k', token: 2n });
    await clock.advance(10);
    holds.enter('B', { key: 'k', token: 1n });
    holds.add('exit', 'A', 'k');
    expect(holds.events.map(({ atMs }) => atMs)).toEqual([0, 10, 10]);
    expect(holds.problems()).toEqual([
      'k: B says "enter" at 10 ms beside A',
      'k: B got token 1 at 10 ms, after 2',
    ]);
    expect([holds.grants(), holds.grants('A')]).toEqual([2, 1]);
  });
});
