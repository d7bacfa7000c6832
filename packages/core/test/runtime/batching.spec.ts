import { SeededRandom, VirtualClock } from '@guard/testing';
import { Coalescer, type CoalescerOptions } from '../../src/runtime/flight/coalescer.js';
import type { Landing } from '../../src/runtime/flight/operation.js';
import { Loads } from '../../src/runtime/flight/load.js';
import { Scheduler, type Due } from '../../src/runtime/flight/scheduler.js';

interface Flight {
  readonly keys: readonly string[];
  land(): void;
  fail(cause: Error): void;
}

function lane({
  maxBatch = 64,
  ...options
}: Partial<Pick<CoalescerOptions<string, string>, 'maxBatch' | 'together' | 'loads'>> = {}): {
  readonly clock: VirtualClock;
  readonly flights: Flight[];
  readonly landings: Landing<string>[];
  readonly submit: (key: string, timeoutMs?: number) => { withdraw(): boolean };
} {
  const clock = new VirtualClock();
  const flights: Flight[] = [];
  const landings: Landing<string>[] = [];
  const coalescer = new Coalescer<string, string>({
    clock,
    deadlines: new Scheduler(clock, true),
    maxBatch,
    ...options,
    send: (keys) =>
      new Promise((resolve, reject) => {
        flights.push({ keys, land: () => resolve(keys.map((key) => `answer to ${key}`)), fail: reject });
      }),
  });
  const submit = (key: string, timeoutMs = 5_000): { withdraw(): boolean } =>
    coalescer.submit('', key, key, timeoutMs, (landing) => landings.push(landing));
  return { clock, flights, landings, submit };
}

describe('a coalescer', () => {
  it('[C2] sends at once when nothing is in flight, as soon as everything that is ready has run', async () => {
    const { clock, flights, submit } = lane();
    submit('a');
    // Whoever wakes in the same turn, however many reactions deep, travels along.
    void Promise.resolve()
      .then(() => undefined)
      .then(() => undefined)
      .then(() => submit('b'));
    await new Promise<void>((resolve) => process.nextTick(resolve));
    expect(flights.map((flight) => flight.keys)).toEqual([['a', 'b']]);
    await clock.settle();
    expect(flights).toHaveLength(1);
  });

  it('says in whole milliseconds for how long the backend was silent', async () => {
    const { clock, landings, submit } = lane();
    submit('a', 2_000 / 3);
    await clock.advance(1_000);
    const cause = new Error('the backend did not answer within 667 ms');
    expect(landings).toMatchObject([{ ok: false, cause }]);
  });

  it('[C2] gathers while two batches are in flight, half of what is outstanding in each, sorted by key', async () => {
    const { clock, flights, submit } = lane();
    for (let index = 0; index < 42; index += 1) submit(`k${String((index * 17) % 42).padStart(2, '0')}`);
    await clock.settle();
    expect(flights.map((flight) => flight.keys.length)).toEqual([21, 21]);
    for (let index = 0; index < 38; index += 1) submit(`l${String((index * 17) % 38).padStart(2, '0')}`);
    await clock.settle();
    expect(flights).toHaveLength(2);
    flights[0]!.land();
    await clock.settle();
    // 38 wait and 21 are in flight: half of 59.
    expect(flights[2]!.keys).toHaveLength(30);
    expect(flights[2]!.keys).toEqual([...flights[2]!.keys].sort());
  });

  it('[C2] counts what is outstanding of the verbs that take turns with it', async () => {
    const loads = new Loads();
    const [claims, releases] = [lane({ loads }), lane({ loads })];
    for (let index = 0; index < 20; index += 1) claims.submit(`k${index}`);
    for (let index = 0; index < 30; index += 1) releases.submit(`l${index}`);
    await releases.clock.settle();
    await claims.clock.settle();
    // Half of fifty, of which the second verb has thirty.
    expect(claims.flights.map((flight) => flight.keys.length)).toEqual([20]);
    expect(releases.flights.map((flight) => flight.keys.length)).toEqual([25, 5]);
  });

  it('[C3] sends renewals of one turn together, as many as the backend takes', async () => {
    const { clock, flights, submit } = lane({ maxBatch: 30, together: true });
    for (let index = 0; index < 50; index += 1) submit(`k${index}`);
    await clock.settle();
    expect(flights.map((flight) => flight.keys.length)).toEqual([30, 20]);
  });

  it('never has one key twice in a batch or in two batches in flight', async () => {
    const { clock, flights, submit } = lane();
    const random = new SeededRandom(7);
    for (let index = 0; index < 400; index += 1) submit(`k${Math.floor(random.fraction() * 9)}`);
    await clock.settle();
    const open = new Set<Flight>();
    let seen = 0;
    let sent = 0;
    while (sent < 400) {
      for (; seen < flights.length; seen += 1) {
        open.add(flights[seen]!);
        sent += flights[seen]!.keys.length;
      }
      const keys = [...open].flatMap((flight) => flight.keys);
      expect(new Set(keys).size).toBe(keys.length);
      expect(open.size).toBeLessThanOrEqual(2);
      const [first] = open;
      open.delete(first!);
      first!.land();
      await clock.settle();
    }
  });

  it('[L3] gives a hung flight up, and does not let it hold the next', async () => {
    const { clock, flights, landings, submit } = lane();
    submit('a', 300);
    await clock.settle();
    submit('b', 300);
    submit('a');
    await clock.settle();
    expect(flights).toHaveLength(2);
    await clock.advance(299);
    expect(landings).toHaveLength(0);
    await clock.advance(1);
    expect(landings.map((landing) => landing.ok)).toEqual([false, false]);
    expect(flights[2]!.keys).toEqual(['a']);
    // The late answer is not looked at.
    flights[0]!.land();
    await clock.settle();
    expect(landings).toHaveLength(2);
  });

  it('[S6] tells every operation of a failed flight that nothing is known', async () => {
    const { clock, flights, landings, submit } = lane();
    submit('a');
    await clock.settle();
    flights[0]!.fail(new Error('reset'));
    await clock.settle();
    expect(landings).toEqual([expect.objectContaining({ ok: false, cause: new Error('reset') })]);
  });

  it('takes back what was not sent yet, and nothing else', async () => {
    const { clock, flights, landings, submit } = lane();
    const sent = submit('a');
    await clock.settle();
    submit('b');
    await clock.settle();
    const waiting = submit('c');
    const behind = submit('a');
    expect(sent.withdraw()).toBe(false);
    expect(waiting.withdraw()).toBe(true);
    expect(behind.withdraw()).toBe(true);
    submit('a');
    for (let index = 0; index < flights.length; index += 1) {
      flights[index]!.land();
      await clock.settle();
    }
    expect(landings).toHaveLength(3);
  });

  it('lets timers run over a backend that answers without I/O', async () => {
    const { systemClock } = await import('../../src/index.js');
    const deadlines = new Scheduler(systemClock, true);
    const coalescer = new Coalescer<number, number>({
      clock: systemClock,
      deadlines,
      maxBatch: 8,
      send: (ops) => Promise.resolve(ops),
    });
    let fired = false;
    const timer = systemClock.setTimer(() => (fired = true), 5);
    const next = (): Promise<unknown> =>
      new Promise((resolve) => coalescer.submit('', 'k', 1, 1_000, resolve));
    // Bounded by the number of rounds, not by time: without a turn for timers it would run through all of them.
    let rounds = 0;
    for (; !fired && rounds < 2_000_000; rounds += 1) await next();
    timer.cancel();
    expect(fired).toBe(true);
  });
});

describe('the scheduler', () => {
  it('[C3] fires everything in the order of its time over one timer', async () => {
    const clock = new VirtualClock();
    const scheduler = new Scheduler(clock, false);
    const random = new SeededRandom(11);
    const fired: number[] = [];
    const items = Array.from({ length: 500 }, () => {
      const item: Due = { dueMonoMs: 0, slot: -1, fire: () => fired.push(item.dueMonoMs) };
      scheduler.schedule(item, clock.now().monoMs + Math.floor(random.fraction() * 10_000));
      return item;
    });
    for (const item of items.slice(0, 100)) scheduler.cancel(item);
    for (const item of items.slice(100, 200)) scheduler.schedule(item, item.dueMonoMs + 5_000);
    expect(clock.pendingTimers.total).toBe(1);
    await clock.advance(20_000);
    expect(fired).toHaveLength(400);
    expect(fired).toEqual([...fired].sort((a, b) => a - b));
    expect(clock.pendingTimers.total).toBe(0);
  });
});
