import { systemRandom } from '../../src/runtime/random.js';

test('ids of the system are 128 bits, and none comes twice, however many are drawn', () => {
  const ids = Array.from({ length: 10_000 }, () => systemRandom.id());
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => Buffer.from(id, 'base64url').length !== 16)).toEqual([]);
  // Every bit is set in about half of them.
  const bytes = ids.map((id) => Buffer.from(id, 'base64url'));
  for (let bit = 0; bit < 128; bit += 1) {
    const set = bytes.filter((one) => (one[bit >> 3]! >> (bit & 7)) & 1).length;
    expect(Math.abs(set - 5_000)).toBeLessThan(500);
  }
});
