/**
 * The payments to settle, made from a seed, and what every merchant has to end up with. The expectation is summed up
 * here, from the payments as they were made, and never from the database: so the verdict does not trust the job.
 */
import { SeededRandom } from '@guard/testing';

/** How many merchants are paid. */
export const MERCHANTS = 40;
/** How many payments fall into one occurrence. */
const PAYMENTS_PER_OCCURRENCE = 500;
/** Part of the payments that are delivered twice, as payment providers do when an answer was lost. */
const TWICE = 0.04;
/** Part of the payments that look like the one before but are not: who compares amounts would drop them. */
const TWINS = 0.02;
const MAX_CENTS = 250_000;

/** One delivery of a payment. Two deliveries with one `payment` are one payment. */
export interface Delivery {
  readonly payment: string;
  readonly merchant: number;
  /** Index of the occurrence it was delivered in. */
  readonly occurrence: number;
  readonly cents: number;
}

/** Everything that comes from the seed. */
export interface Payments {
  /** In the order of their arrival. */
  readonly deliveries: readonly Delivery[];
  /** How many payments there are; the rest of the deliveries are repetitions. */
  readonly payments: number;
  /** Cents that each merchant is owed, by occurrence; a merchant without a payment is not in the map. */
  readonly owed: readonly ReadonlyMap<number, number>[];
  readonly totalCents: number;
}

/** Makes the payments of so many occurrences. The same seed makes the same payments. */
export function makePayments(seed: number, occurrences: number): Payments {
  const random = new SeededRandom(seed);
  const arriving: Delivery[][] = Array.from({ length: occurrences }, () => []);
  const owed = Array.from({ length: occurrences }, () => new Map<number, number>());
  let totalCents = 0;
  for (const [occurrence, sums] of owed.entries()) {
    let previous: Delivery | undefined;
    for (let count = 0; count < PAYMENTS_PER_OCCURRENCE; count += 1) {
      const made = makePayment(random, occurrence, previous);
      arriving[occurrence]?.push(made);
      if (random.fraction() < TWICE) arriving[secondArrival(random, occurrence, occurrences)]?.push(made);
      sums.set(made.merchant, (sums.get(made.merchant) ?? 0) + made.cents);
      totalCents += made.cents;
      previous = made;
    }
  }
  const deliveries = arriving.flatMap((list, occurrence) => list.map((made) => ({ ...made, occurrence })));
  return { deliveries, payments: PAYMENTS_PER_OCCURRENCE * occurrences, owed, totalCents };
}

function makePayment(random: SeededRandom, occurrence: number, previous: Delivery | undefined): Delivery {
  const payment = random.id();
  if (previous !== undefined && random.fraction() < TWINS) return { ...previous, payment };
  const merchant = random.integer(1, MERCHANTS);
  return { payment, merchant, occurrence, cents: random.integer(1, MAX_CENTS) };
}

/** A repetition comes in the same occurrence or in the next one, never before the payment itself. */
function secondArrival(random: SeededRandom, occurrence: number, occurrences: number): number {
  return Math.min(occurrences - 1, occurrence + random.integer(0, 1));
}
