/**
 * Whole programs on one backend, as an application would write them: processes of their own, which wait, are told to
 * end, die of an error, and meet a backend that is away or broken. The same for every adapter.
 */
import { join } from 'node:path';
import { createGuard, systemRandom, type Guard } from '@guard/core';
import { startWorker, type WorkerProcess } from '@guard/testing';
import type { LongTimes } from './long-times.js';
import { opened, type Programmed } from './opener.js';
import type { Tick, TickInput } from './tick.js';

/** Ends what was begun. */
export type Undo = () => Promise<unknown>;

/** Something that can be broken, and what a service then meets. */
export interface Breakage {
  readonly what: string;
  /** The code of its error. */
  readonly code: string;
  begin(place: unknown): Promise<Undo>;
}

/** What a backend is to these programs. */
export interface ProgramSuite {
  /** Path of the module whose default export opens the backends in a program's process: an `Opener`. */
  readonly opener: string;
  /** A place that nobody used before, as plain data for the opener; ready for runs. */
  readonly newPlace: () => Promise<{ readonly place: unknown; readonly remove: Undo }>;
  /** Takes the backend away from everybody. */
  readonly away: (place: unknown) => Promise<Undo>;
  readonly breakages: readonly Breakage[];
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Describes the programs. */
export function describePrograms(name: string, suite: ProgramSuite): void {
  let programmed: Programmed;
  let cleanups: Undo[];

  beforeEach(async () => {
    const { place, remove } = await suite.newPlace();
    programmed = { opener: suite.opener, place, namespace: `t-${systemRandom.id()}` };
    cleanups = [remove];
  });

  afterEach(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });

  /** Whoever starts it ends it. */
  function started<O>(file: string, input: object): WorkerProcess<O> {
    return startWorker<O>(join(__dirname, `${file}.ts`), {
      input: { ...programmed, ...input },
      execArgv: ['--conditions=@guard/source'],
    });
  }

  function program<O = unknown>(file: string, input: object = {}): WorkerProcess<O> {
    const worker = started<O>(file, input);
    cleanups.push(() => worker.close());
    return worker;
  }

  async function guardHere(): Promise<Guard> {
    const { locks, close } = await opened(programmed);
    const guard = createGuard({ locks, namespace: programmed.namespace });
    cleanups.push(() => guard.close().then(close));
    return guard;
  }

  /** A service, and all that it told. */
  function service(options: Partial<TickInput> = {}) {
    const worker = program('tick', { everyMs: 250, bodyMs: 1_500, grace: '10s', ttl: '6s', ...options });
    const told: Tick[] = [];
    const next = async (...whats: Tick['what'][]): Promise<Tick> => {
      for (;;) {
        const tick = await worker.next<Tick>();
        told.push(tick);
        if (whats.includes(tick.what)) return tick;
      }
    };
    return { worker, told, next };
  }

  describe(`[B106] [L5] a program that waits on ${name}`, () => {
    it('lives until it has the lock, and ends once it gave it back', async () => {
      const held = await (await guardHere()).acquire('ex');
      const waiter = program('wait-and-go');
      await pause(2_000);
      await held.release();
      expect(await waiter.next()).toBe('got');
      await waiter.finish();
    });

    it('lives while the backend is not there', async () => {
      const back = await suite.away(programmed.place);
      const waiter = program('wait-and-go');
      await pause(2_000);
      await back();
      expect(await waiter.next()).toBe('got');
      await waiter.finish();
    });

    it('lives until a late answer to its release has come', async () => {
      const waiter = program('wait-and-go', { releaseLateMs: 1_500 });
      expect(await waiter.next()).toBe('got');
      await waiter.finish();
    });
  });

  describe(`[B110] a service on ${name} that is told to end while its run works`, () => {
    it('lets it finish, begins nothing new, and leaves the next one to another node at once', async () => {
      const [first, second] = [service(), service()];
      const { mine, other } = await Promise.race([
        first.next('begin').then(() => ({ mine: first, other: second })),
        second.next('begin').then(() => ({ mine: second, other: first })),
      ]);
      mine.worker.signal('SIGTERM');
      const end = await mine.next('end', 'cut');
      expect(end.what).toBe('end');
      await mine.worker.finish();
      const begin = await other.next('begin');
      expect(begin.atMs).toBeGreaterThan(end.atMs);
      // The lease would have lasted six seconds.
      expect(begin.atMs - end.atMs).toBeLessThan(4_000);
      // A try that was on its way when the guard closed may end with that.
      const told = mine.told.filter(({ code }) => code !== 'closed');
      expect(told.map(({ what }) => what)).toEqual(['begin', 'end']);
      other.worker.signal('SIGTERM');
      await other.worker.finish();
    });

    it('stops it at the end of the grace, gives the lock back, and ends', async () => {
      const first = service({ bodyMs: 60_000, grace: '1s' });
      const begin = await first.next('begin');
      first.worker.signal('SIGTERM');
      const cut = await first.next('end', 'cut');
      expect(cut.what).toBe('cut');
      expect(cut.atMs - begin.atMs).toBeGreaterThan(900);
      await first.worker.finish();
      const second = service({ bodyMs: 10 });
      const next = await second.next('begin');
      expect(next.atMs).toBeGreaterThan(cut.atMs);
      second.worker.signal('SIGTERM');
      await second.worker.finish();
    });
  });

  it(`[B111] a program on ${name} that dies of its own error blocks nobody for longer than its lease`, async () => {
    const dying = started('die-holding', { ttl: '3s' });
    expect(await dying.next()).toBe('held');
    const heldAtMs = nowMs();
    await expect(dying.finish()).rejects.toThrow('nobody catches this');
    const next = await (await guardHere()).acquire('dd', { wait: '20s' });
    // The lease and a second, another one where leases have whole seconds, and one for a busy machine.
    expect(nowMs() - heldAtMs).toBeLessThan(3_000 + 3 * 1_000);
    expect(await next.release()).toBe('released');
  });

  it(`[B149] times on ${name} that are longer than a timer holds are as long as they are`, async () => {
    expect(await program<LongTimes>('long-times').finish()).toEqual({ renewals: 0, ended: 0 });
  });

  it.each(suite.breakages)(
    `[B125] services on ${name} run nothing while $what, say so, and go on after the repair`,
    async ({ code, begin }) => {
      // Each with a beat of its own: on one beat, one that comes a little later than another finds it at work for ever.
      const services = [280, 310, 340].map((everyMs) => service({ everyMs, bodyMs: 10, ttl: '2s' }));
      await Promise.all(services.map(({ next }) => next('begin')));
      const repair = await begin(programmed.place);
      for (const { next } of services) expect((await next('error')).code).toBe(code);
      const brokenAtMs = nowMs();
      await pause(1_000);
      const repairedAtMs = nowMs();
      await repair();
      for (const { next } of services) {
        let tick: Tick;
        do tick = await next('begin');
        while (tick.atMs < brokenAtMs);
        // Nothing began until the repair, and then it went on.
        expect(tick.atMs).toBeGreaterThan(repairedAtMs);
      }
      for (const { worker } of services) worker.signal('SIGTERM');
      for (const { worker } of services) await worker.finish();
    },
  );
}
