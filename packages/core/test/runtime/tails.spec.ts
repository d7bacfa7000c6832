import { SeededRandom } from '@guard/testing';
import { Tails, type Cell } from '../../src/runtime/flight/tails.js';

interface Op {
  readonly key: string;
  cell: Cell<Op> | undefined;
}

describe('the last operations of keys', () => {
  const { seed } = new SeededRandom();

  it(`are those of a map from which who leaves is taken out, however many keys come and go (GUARD_SEED=${seed})`, () => {
    const random = new SeededRandom(seed);
    const tails = new Tails<Op>();
    const last = new Map<string, Op>();
    let present: Op[] = [];
    for (let step = 0; step < 20_000; step += 1) {
      // Up to two hundred at once, then down to none, of more keys than are kept.
      const grows = Math.floor(step / 400) % 2 === 0;
      if (random.fraction() < (grows ? 0.8 : 0.2)) {
        const op: Op = { key: `k${random.integer(1, 300)}`, cell: undefined };
        expect(tails.append(op)).toBe(last.get(op.key));
        last.set(op.key, op);
        present.push(op);
      } else if (present.length > 0) {
        const op = present[random.integer(0, present.length - 1)]!;
        present = present.filter((other) => other !== op);
        tails.leave(op);
        if (last.get(op.key) === op) last.delete(op.key);
      }
      expect(tails.isEmpty).toBe(last.size === 0);
    }
  });

  it('[B104] keep no key for long once it has none', async () => {
    const tails = new Tails<Op>();
    const keys: WeakRef<Cell<Op>>[] = [];
    for (let n = 0; n < 1_000; n += 1) {
      const op: Op = { key: `k${n}`, cell: undefined };
      tails.append(op);
      keys.push(new WeakRef(op.cell!));
      tails.leave(op);
    }
    await collected();
    expect(keys.filter((cell) => cell.deref() !== undefined).length).toBeLessThanOrEqual(64);
  });
});

/** After everything that can be collected was. */
async function collected(): Promise<void> {
  const { setFlagsFromString } = await import('node:v8');
  const { runInNewContext } = await import('node:vm');
  setFlagsFromString('--expose-gc');
  // What was referenced in this turn lives until it ends.
  await new Promise((resolve) => setImmediate(resolve));
  (runInNewContext('gc') as () => void)();
}
