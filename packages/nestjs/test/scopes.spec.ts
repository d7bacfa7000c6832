/** Instances that come and go: each call is guarded, and Guard's own timer gets an instance for every run. */
import { currentRun, Locked, memoryLocks, memoryState, type Run, SingleRun } from '@guard/core';
import { GuardedBy, GuardModule, GuardTestingModule } from '@guard/nestjs';
import { VirtualClock } from '@guard/testing';
import { Inject, Injectable, Scope } from '@nestjs/common';
import { ContextIdFactory, ModuleRef, REQUEST } from '@nestjs/core';
import { closeAll, guardOf, started } from './support/app.js';

afterEach(closeAll);

const guard = (): ReturnType<typeof GuardModule.forRoot> =>
  GuardModule.forRoot({ locks: memoryLocks(), state: memoryState() });

let made: object[];
beforeEach(() => {
  made = [];
});

@Injectable({ scope: Scope.REQUEST })
class PerRequest {
  constructor(@Inject(REQUEST) readonly request: unknown) {
    made.push(this);
  }
  @Locked({ key: 'one' }) async locked(): Promise<boolean> {
    return made.includes(this);
  }
  @SingleRun({ window: '1d' }) async settle(): Promise<void> {
    seen.push(this.request);
  }
}
let seen: unknown[];
beforeEach(() => {
  seen = [];
});

@Injectable()
class DependsOnIt {
  constructor(@Inject(PerRequest) readonly inner: PerRequest) {}
  @Locked({ key: 'outer' }) async locked(): Promise<boolean> {
    return this.inner.locked();
  }
}

describe('[V18] [B117] calls in every scope are guarded', () => {
  test('request-scoped instances, and those that depend on them', async () => {
    const app = await started({ imports: [guard()], providers: [PerRequest, DependsOnIt] });
    const [one, two] = [ContextIdFactory.create(), ContextIdFactory.create()];
    const first = await app.resolve(DependsOnIt, one);
    const second = await app.resolve(DependsOnIt, two);
    expect(first).not.toBe(second);
    await expect(first.locked()).resolves.toBe(true);
    await expect(second.locked()).resolves.toBe(true);
    expect((await app.resolve(PerRequest, one)).constructor).toBe(PerRequest);
    await first.inner.settle();
    await second.inner.settle();
    expect(seen).toHaveLength(1);
  });

  test('durable ones', async () => {
    @Injectable({ scope: Scope.REQUEST, durable: true })
    class Durable {
      @Locked() async locked(): Promise<string> {
        return 'durable';
      }
    }
    const app = await started({ imports: [guard()], providers: [Durable] });
    await expect((await app.resolve(Durable)).locked()).resolves.toBe('durable');
  });

  test('transient ones: those that are there already, and those that are made later', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient {
      @Locked() async locked(): Promise<string> {
        return 'transient';
      }
    }
    @Injectable()
    class User {
      constructor(@Inject(Transient) readonly used: Transient) {}
    }
    const app = await started({ imports: [guard()], providers: [Transient, User] });
    await expect(app.get(User).used.locked()).resolves.toBe('transient');
    const later = await app.resolve(Transient);
    expect(later).not.toBe(app.get(User).used);
    await expect(later.locked()).resolves.toBe('transient');
  });

  test('what a request-scoped factory answers', async () => {
    const factory = {
      provide: 'made',
      scope: Scope.REQUEST,
      inject: [REQUEST],
      useFactory: async (request: unknown) => new PerRequest(request),
    };
    const app = await started({ imports: [guard()], providers: [factory] });
    await expect((await app.resolve<PerRequest>('made')).locked()).resolves.toBe(true);
  });

  test('two applications in one process each bind their own, and leave the class as it was', async () => {
    const apps = await Promise.all(
      [1, 2].map(() => started({ imports: [guard()], providers: [PerRequest] })),
    );
    for (const app of apps) {
      const lock = await guardOf(app).acquire('one');
      const call = (await app.resolve(PerRequest)).locked();
      await expect(Promise.race([call, Promise.resolve('waits')])).resolves.toBe('waits');
      await lock.release();
      await call;
    }
    await expect(new PerRequest(1).locked()).rejects.toMatchObject({ code: 'not-bound' });
  });

  test('the metadata of a class is still found by others', async () => {
    @GuardedBy('default')
    @Injectable({ scope: Scope.REQUEST })
    class Marked {
      @Locked() async locked(): Promise<void> {}
    }
    const app = await started({ imports: [guard()], providers: [Marked] });
    const wrapper = [...app.get(ModuleRef)['container'].getModules().values()]
      .flatMap((module) => [...module.providers.values()])
      .find(({ token }) => token === Marked)!;
    const getMetadata = (Reflect as never as { getMetadata: (key: string, of: unknown) => unknown })
      .getMetadata;
    expect(getMetadata('@guard/nestjs/guarded-by', wrapper.metatype)).toBe('default');
    expect(wrapper.metatype!.prototype).toBe(Marked.prototype);
  });
});

test("[V18] Guard's own timer makes an instance for every run, with the run as its request", async () => {
  @Injectable({ scope: Scope.REQUEST })
  class Nightly {
    constructor(@Inject(REQUEST) readonly run: Run) {
      made.push(this);
    }
    @SingleRun({ every: '10s' }) async settle(): Promise<void> {
      seen.push([this.run.task, this.run.trigger, currentRun() === this.run, this.run.key.slice(11, 19)]);
    }
  }
  const clock = new VirtualClock();
  const starting = started({ imports: [GuardTestingModule.forRoot({ clock })], providers: [Nightly] });
  await clock.runUntil(starting);
  await clock.advance(20_100);
  expect(seen).toEqual([
    ['Nightly.settle', 'cron', true, '00:00:10'],
    ['Nightly.settle', 'cron', true, '00:00:20'],
  ]);
  expect(made).toHaveLength(2);
  await clock.runUntil(closeAll());
});
