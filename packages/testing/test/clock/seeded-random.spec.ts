import { SeededRandom } from '@guard/testing';

const draw = (random: SeededRandom): unknown[] => [
  random.id(),
  random.fraction(),
  random.id(),
  random.integer(1, 6),
];

describe('SeededRandom', () => {
  it('draws the same from the same seed, and something else from another', () => {
    expect(draw(new SeededRandom(42))).toEqual(draw(new SeededRandom(42)));
    expect(draw(new SeededRandom(42))).not.toEqual(draw(new SeededRandom(43)));
  });

  it('never draws an id twice, over seeds too', () => {
    const ids = [1, 2, 3].flatMap((seed) => {
      const random = new SeededRandom(seed);
      return Array.from({ length: 1_000 }, () => random.id());
    });
    expect(new Set(ids).size).toBe(3_000);
    expect(ids[0]).toMatch(/^[\w-]{22}$/);
  });

  it('draws fractions from [0, 1) evenly enough', () => {
    const random = new SeededRandom(7);
    const tenths = new Array<number>(10).fill(0);
    for (let n = 0; n < 10_000; n += 1) tenths[Math.floor(random.fraction() * 10)]! += 1;
    expect(Math.min(...tenths)).toBeGreaterThan(850);
    expect(Math.max(...tenths)).toBeLessThan(1_150);
  });

  it('draws integers with both bounds, and picks every choice', () => {
    const random = new SeededRandom(9);
    const drawn = new Set(Array.from({ length: 200 }, () => random.integer(1, 3)));
    expect([...drawn].sort()).toEqual([1, 2, 3]);
    const picked = new Set(Array.from({ length: 200 }, () => random.pick(['a', 'b'])));
    expect([...picked].sort()).toEqual(['a', 'b']);
  });

  it('takes the seed from GUARD_SEED, and shows the seed that it drew', () => {
    const before = process.env['GUARD_SEED'];
    try {
      process.env['GUARD_SEED'] = '12345';
      expect(new SeededRandom().seed).toBe(12_345);
      process.env['GUARD_SEED'] = 'abc';
      expect(() => new SeededRandom()).toThrow(/GUARD_SEED must be a whole number, got "abc"/);
      delete process.env['GUARD_SEED'];
      const { seed } = new SeededRandom();
      expect(draw(new SeededRandom(seed))).toEqual(draw(new SeededRandom(seed)));
    } finally {
      if (before === undefined) delete process.env['GUARD_SEED'];
      else process.env['GUARD_SEED'] = before;
    }
  });
});
