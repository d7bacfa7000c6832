/** Health, as @nestjs/terminus asks for it. */
import { type Clock, memoryLocks, memoryState, SingleRun } from '@guard/core';
import { GuardHealthIndicator, GuardModule, GuardTestingModule } from '@guard/nestjs';
import { faultyBackend, VirtualClock } from '@guard/testing';
import { Controller, Get, Inject } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { closeAll, guardOf, serving, started } from './support/app.js';

afterEach(closeAll);

@Controller('health')
class Health {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(GuardHealthIndicator) private readonly guard: GuardHealthIndicator,
  ) {}
  @Get() @HealthCheck() check(): Promise<unknown> {
    return this.health.check([() => this.guard.check('guard')]);
  }
}

test('Terminus answers 200 with what the guard tells of itself, and 503 once it is closed', async () => {
  const { app, url } = await serving({
    imports: [
      TerminusModule.forRoot({ logger: false }),
      GuardModule.forRoot({ locks: memoryLocks(), state: memoryState() }),
    ],
    controllers: [Health],
  });
  const good = await fetch(`${url}/health`);
  expect([good.status, await good.json()]).toEqual([
    200,
    expect.objectContaining({
      status: 'ok',
      info: {
        guard: {
          status: 'up',
          locks: 'up',
          runs: 'up',
          state: 'started',
          skewMs: expect.any(Number) as number,
          missedHeartbeats: 0,
          plans: true,
          loopLagMs: expect.any(Number) as number,
        },
      },
    }),
  ]);
  await guardOf(app).close();
  const bad = await fetch(`${url}/health`);
  expect(bad.status).toBe(503);
  expect(await bad.json()).toMatchObject({ error: { guard: { status: 'down', state: 'closed' } } });
});

test('a backend that does not answer is a reason, and the node begins nothing until it does', async () => {
  const clock = new VirtualClock();
  const faulty = faultyBackend(memoryLocks({ clock }), { clock });
  let runs = 0;
  class Often {
    @SingleRun({ every: '1s' }) async run(): Promise<void> {
      runs += 1;
    }
  }
  const imports = [
    GuardTestingModule.forRoot({ clock, locks: faulty.backend, sweepInterval: '2s', name: 'default' }),
  ];
  const app = await clock.runUntil(started({ imports, providers: [Often] }));
  const check = (): Promise<{ readonly guard: Record<string, unknown> }> =>
    clock.runUntil(app.get(GuardHealthIndicator).check('guard')) as never;
  await clock.advance(3_100);
  expect((await check()).guard).toMatchObject({ status: 'up' });
  faulty.down();
  await clock.advance(30_000);
  const before = runs;
  const { guard } = await check();
  expect(guard).toMatchObject({ status: 'down', locks: 'down', runs: 'up', plans: false });
  expect(guard['reasons']).toEqual([
    'the lock backend does not answer',
    expect.stringMatching(/^this node could not announce itself \d+ times$/),
  ]);
  await clock.advance(10_000);
  expect(runs).toBe(before);
  faulty.heal();
  await clock.advance(40_000);
  expect((await check()).guard).toMatchObject({ status: 'up', plans: true });
  expect(runs).toBeGreaterThan(before);
  await clock.runUntil(closeAll());
});

test('a node whose clock is wrong by minutes begins nothing by itself, and says by how much, until it is right', async () => {
  const clock = new VirtualClock();
  let aheadMs = 0;
  // The store's machine, by whose clock instants are due.
  const store: Clock = {
    now: () => ({ ...clock.now(), wallMs: clock.now().wallMs + aheadMs }),
    setTimer: (run, afterMs, options) => clock.setTimer(run, afterMs, options),
    yield: (resume) => clock.yield(resume),
  };
  let runs = 0;
  class Often {
    @SingleRun({ every: '1s' }) async run(): Promise<void> {
      runs += 1;
    }
  }
  const imports = [GuardTestingModule.forRoot({ clock, state: memoryState({ clock: store }) })];
  const app = await clock.runUntil(started({ imports, providers: [Often] }));
  const check = async (): Promise<Record<string, unknown>> =>
    (await clock.runUntil(app.get(GuardHealthIndicator).check('guard'))).guard as never;
  await clock.advance(5_000);
  expect([await check(), runs > 2]).toEqual([expect.objectContaining({ status: 'up', plans: true }), true]);
  aheadMs = 600_000;
  await clock.advance(60_000);
  const before = runs;
  await clock.advance(60_000);
  expect(runs).toBe(before);
  expect(await check()).toMatchObject({
    status: 'down',
    plans: false,
    reasons: [expect.stringMatching(/^this machine's clock is -?\d{6} ms off: the node plans nothing$/)],
  });
  aheadMs = 0;
  // What it had planned before anybody knew has to come first: no instant runs twice.
  await clock.advance(660_000);
  expect([await check(), runs > before]).toEqual([expect.objectContaining({ status: 'up' }), true]);
  await clock.runUntil(closeAll());
});

test('a hanging backend is waited for no longer than said, and a blocked loop is told', async () => {
  const clock = new VirtualClock();
  const faulty = faultyBackend(memoryLocks({ clock }), { clock });
  const app = await clock.runUntil(
    started({ imports: [GuardTestingModule.forRoot({ clock, locks: faulty.backend })] }),
  );
  const indicator = app.get(GuardHealthIndicator);
  faulty.cut();
  const startMs = clock.now().monoMs;
  const checked = await clock.runUntil(indicator.check('guard', { timeout: '500ms' }));
  expect(checked.guard).toMatchObject({ status: 'down', locks: 'down' });
  expect(clock.now().monoMs - startMs).toBeLessThanOrEqual(500);
  faulty.heal();
  await clock.advance(30_000);
  await clock.runUntil(indicator.check('guard'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (const endMs = performance.now() + 300; performance.now() < endMs;);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const lagged = await clock.runUntil(indicator.check('guard', { maxLag: '100ms' }));
  expect(lagged.guard.reasons).toEqual([expect.stringMatching(/^the event loop was blocked for \d+ ms$/)]);
  await clock.runUntil(closeAll());
});

test('refuses the name of a guard that is not there, and asks no run store where there is none', async () => {
  const app = await started({ imports: [GuardModule.forRoot({ name: 'fast', locks: memoryLocks() })] });
  const indicator = app.get(GuardHealthIndicator);
  await expect(indicator.check('guard')).rejects.toThrow(/no guard is registered under the name 'default'/);
  const { fast } = await indicator.check('fast', { name: 'fast' });
  expect(fast).toMatchObject({ status: 'up', locks: 'up', state: 'idle' });
  expect(fast).not.toHaveProperty('runs');
});
