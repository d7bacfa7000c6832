import { SeededRandom } from '@guard/testing';
import { type Delivery, makePayments, MERCHANTS } from '../src/payments.js';

const { seed } = new SeededRandom();

describe(`payments (GUARD_SEED=${seed})`, () => {
  const made = makePayments(seed, 20);

  it('are 10,000 of 40 merchants over 20 occurrences, in whole cents', () => {
    expect(made.payments).toBe(10_000);
    expect(new Set(made.deliveries.map(({ payment }) => payment)).size).toBe(10_000);
    expect(new Set(made.deliveries.map(({ merchant }) => merchant)).size).toBe(MERCHANTS);
    expect(new Set(made.deliveries.map(({ occurrence }) => occurrence)).size).toBe(20);
    expect(made.deliveries.every(({ cents }) => Number.isInteger(cents) && cents > 0)).toBe(true);
  });

  it('are the same for the same seed, and others for another', () => {
    expect(makePayments(seed, 20)).toEqual(made);
    expect(makePayments(seed + 1, 20).totalCents).not.toBe(made.totalCents);
  });

  it('would be counted twice by a careless job, within an occurrence and over two of them', () => {
    const again = repeated(made.deliveries);
    expect(again.some(([first, second]) => first.occurrence === second.occurrence)).toBe(true);
    expect(again.some(([first, second]) => first.occurrence < second.occurrence)).toBe(true);
    const careless = made.deliveries.reduce((sum, { cents }) => sum + cents, 0);
    expect(careless).toBeGreaterThan(made.totalCents);
  });

  it('owe every payment once, in the occurrence of its first delivery', () => {
    const seen = new Set<string>();
    const owed = made.owed.map(() => new Map<number, number>());
    for (const { payment, merchant, occurrence, cents } of made.deliveries) {
      if (seen.has(payment)) continue;
      seen.add(payment);
      owed[occurrence]?.set(merchant, (owed[occurrence].get(merchant) ?? 0) + cents);
    }
    expect(owed).toEqual(made.owed);
  });
});

function repeated(deliveries: readonly Delivery[]): readonly (readonly [Delivery, Delivery])[] {
  const first = new Map<string, Delivery>();
  return deliveries.flatMap((delivery) => {
    const before = first.get(delivery.payment);
    if (before !== undefined) return [[before, delivery] as const];
    first.set(delivery.payment, delivery);
    return [];
  });
}
