import { SeededRandom } from '@guard/testing';
import { FreshMap } from '../../src/value/fresh-map.js';

describe('a map for what comes and goes', () => {
  const { seed } = new SeededRandom();

  it(`is a map in the order of insertion (GUARD_SEED=${seed})`, () => {
    const random = new SeededRandom(seed);
    const map = new Map<number, string>([[1, 'first']]);
    const fresh = new FreshMap<number, string>(map);
    for (let step = 0; step < 20_000; step += 1) {
      const key = random.integer(1, 100);
      const grows = Math.floor(step / 200) % 2 === 0;
      if (random.fraction() < (grows ? 0.7 : 0.3)) {
        map.set(key, `value ${step}`);
        fresh.set(key, `value ${step}`);
      } else expect(fresh.delete(key)).toBe(map.delete(key));
      expect([fresh.size, fresh.get(key), fresh.has(key)]).toEqual([map.size, map.get(key), map.has(key)]);
      expect(fresh.first()).toBe([...map.values()][0]);
    }
    expect([...fresh]).toEqual([...map]);
    expect([...fresh.values()]).toEqual([...map.values()]);
  });

  it('lets whoever goes through it take out what he stands at', () => {
    const fresh = new FreshMap(Array.from({ length: 200 }, (_, n) => [n, n] as const));
    const seen: number[] = [];
    for (const [key] of fresh) {
      seen.push(key);
      if (key % 3 > 0) fresh.delete(key);
    }
    expect(seen).toEqual(Array.from({ length: 200 }, (_, n) => n));
    expect([...fresh.values()]).toEqual(seen.filter((n) => n % 3 === 0));
  });
});
