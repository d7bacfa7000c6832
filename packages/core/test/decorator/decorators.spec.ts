/** `@SingleRun` and `@Locked` on methods, made by every compiler that people use. */
import 'reflect-metadata';
import {
  bindGuard,
  currentLock,
  currentRun,
  type Guard,
  guardedMethods,
  Locked,
  locked,
  setDefaultGuard,
  SingleRun,
  singleRun,
} from '@guard/core';
import { COMPILERS, closeGuards, load, newGuard } from './stage.js';

let guard: Guard;
beforeEach(() => {
  guard = newGuard();
});
afterEach(async () => {
  setDefaultGuard(undefined);
  await closeGuards();
});

const SOURCE = `
import { SingleRun, Locked, currentRun, currentLock } from '@guard/core';
const marked = (key, value) => (first, second, descriptor) => {
  Reflect.defineMetadata(key, value, typeof second === 'object' ? first : descriptor.value);
};
export class Billing {
  prefix = 'own';
  @SingleRun({ window: '1d' }) async settle() { this.settled = currentRun()?.task + ' ' + this.prefix; }
  @SingleRun({ name: 'charge', key: (id) => id, onDuplicate: 'result' })
  async charge(id, cents) { return this.prefix + ' ' + id + ' ' + cents; }
  @Locked({ key: (id) => 'account:' + id }) async transfer(id, cents) { return currentLock().key + ' ' + cents; }
  @Locked() static async report() { return currentLock().key; }
  @SingleRun({ window: '1d' }) @marked('below', 1) async withMetadataBelow() {}
  @marked('above', 2) @SingleRun({ window: '1d' }) async withMetadataAbove(a, b) {}
}
export class Sub extends Billing { async charge(id, cents) { return 'sub ' + (await super.charge(id, cents)); } }
`;

interface Instance {
  settled?: string;
  settle(): Promise<void>;
  charge(id: string, cents: number): Promise<string>;
  transfer(id: string, cents: number): Promise<string>;
  withMetadataBelow(): Promise<void>;
  withMetadataAbove(a: number, b: number): Promise<void>;
}
interface Module {
  readonly Billing: { new (): Instance; readonly name: string; report(): Promise<string> };
  readonly Sub: new () => Instance;
}

describe.each(Object.entries(COMPILERS))('[B116] decorated by %s', (_name, compile) => {
  let module: Module;
  beforeEach(() => {
    module = load<Module>(compile, SOURCE);
  });

  test('a method runs once, with its own this and as the run of its task', async () => {
    setDefaultGuard(guard);
    const billing = new module.Billing();
    await billing.settle();
    expect(billing.settled).toBe('Billing.settle own');
    delete billing.settled;
    await billing.settle();
    expect(billing.settled).toBeUndefined();
    await expect(billing.charge('a', 5)).resolves.toBe('own a 5');
    await expect(billing.charge('a', 7)).resolves.toBe('own a 5');
    await expect(billing.charge('b', 7)).resolves.toBe('own b 7');
  });

  test('its methods are found on the class before there is an instance', () => {
    const { prototype } = module.Billing as unknown as { prototype: object };
    expect(guardedMethods(prototype).map(({ key }) => key)).toEqual(
      expect.arrayContaining(['settle', 'charge', 'transfer']),
    );
    expect(guardedMethods(new module.Billing())).toEqual(guardedMethods(prototype));
  });

  test('a locked method runs under its lock, also a static one', async () => {
    setDefaultGuard(guard);
    await expect(new module.Billing().transfer('x', 9)).resolves.toBe('account:x 9');
    await expect(module.Billing.report()).resolves.toBe('Billing.report');
  });

  test('keeps name, length and every piece of metadata, in either order', () => {
    const { prototype } = module.Billing as unknown as { prototype: Instance };
    expect([prototype.charge.name, prototype.charge.length]).toEqual(['charge', 2]);
    expect([prototype.withMetadataAbove.name, prototype.withMetadataAbove.length]).toEqual([
      'withMetadataAbove',
      2,
    ]);
    expect(Reflect.getOwnMetadata('below', prototype.withMetadataBelow)).toBe(1);
    expect(Reflect.getOwnMetadata('above', prototype.withMetadataAbove)).toBe(2);
  });

  test('without a guard it is an error that names class and method, and nothing runs', async () => {
    const billing = new module.Billing();
    await expect(billing.settle()).rejects.toMatchObject({
      code: 'not-bound',
      message: expect.stringContaining('Billing.settle'),
    });
    await expect(billing.transfer('x', 1)).rejects.toThrow(/Billing.transfer has no guard/);
    await expect(module.Billing.report()).rejects.toThrow(/Billing.report has no guard/);
    expect(billing.settled).toBeUndefined();
  });

  test('a source that has no guard yet is told of as such', async () => {
    const early = locked({ name: 'early', guard: () => undefined as never }, () => Promise.resolve());
    await expect(early()).rejects.toMatchObject({
      code: 'not-bound',
      message: expect.stringContaining(`early has no guard: its option 'guard' answered none`),
    });
  });

  test('without a guard a function is named, or told apart by what wrapped it', async () => {
    const nobody = (): Promise<void> => Promise.resolve();
    await expect(locked({ name: 'reports' }, nobody)()).rejects.toThrow(/] reports has no guard/);
    await expect(locked({ key: 'k' }, nobody)()).rejects.toThrow(/] nobody has no guard/);
    await expect(locked({ key: 'k' }, async () => undefined)()).rejects.toThrow(
      /given to locked\(\), has no guard/,
    );
  });

  test('a bound instance uses its guard, and its methods without arguments are tasks', async () => {
    const other = newGuard();
    setDefaultGuard(other);
    const billing = new module.Billing();
    bindGuard(billing, guard);
    bindGuard(billing, guard);
    await billing.settle();
    expect((await guard.runs.list()).runs.map(({ run }) => run.task)).toEqual(['Billing.settle']);
    expect((await other.runs.list()).runs).toEqual([]);
    await expect(
      guard.start({ tasks: ['Billing.settle', 'Billing.withMetadataBelow'] }),
    ).resolves.toBeUndefined();
    await expect(newGuard().start({ tasks: ['Billing.settle'] })).rejects.toThrow(/registered/);
  });

  test('what is decorated can be listed, without running a getter', () => {
    const found = guardedMethods(new module.Billing()).map(({ kind, key }) => `${kind} ${String(key)}`);
    expect(found.sort()).toEqual([
      'locked transfer',
      'single-run charge',
      'single-run settle',
      'single-run withMetadataAbove',
      'single-run withMetadataBelow',
    ]);
    expect(guardedMethods(module.Billing)).toMatchObject([{ kind: 'locked', key: 'report' }]);
    // The subclass put its own method in the place of this one.
    expect(guardedMethods(new module.Sub()).map(({ key }) => key)).not.toContain('charge');
  });

  test('[B120] an inherited method is the task of the class that defines it', async () => {
    setDefaultGuard(guard);
    const sub = new module.Sub();
    await expect(sub.charge('a', 1)).resolves.toBe('sub own a 1');
    await sub.settle();
    expect(sub.settled).toBe('Billing.settle own');
  });
});

describe('what cannot be guarded is refused while the class is being defined', () => {
  const cases: readonly [string, string, string][] = [
    ['a getter', '@SingleRun() get value() { return 1; }', 'getter'],
    ['a setter', '@Locked() set value(v) {}', 'setter'],
    ['a field', '@SingleRun() value = async () => {};', 'field'],
    ['an accessor', '@SingleRun() accessor value = 1;', 'accessor'],
    ['an async generator', '@SingleRun() async *value() {}', 'generator'],
    ['a generator', '@Locked() *value() {}', 'generator'],
    ['a method that has it already', '@SingleRun() @SingleRun() async value() {}', 'twice'],
    ['a private method without a name', '@SingleRun() async #value() {}', "needs a 'name'"],
    ['bad options', "@SingleRun({ ttl: 'soon' }) async value() {}", 'ttl must be'],
    ['unknown options', '@SingleRun({ keys: 1 }) async value() {}', "no option 'keys'"],
    ['contradictory options', "@SingleRun({ key: 1, window: '1h' }) async value() {}", 'contradict'],
    ['bad options of a lock', '@Locked({ wait: -1 }) async value() {}', 'wait must be'],
  ];
  const onlyStandard = (source: string): boolean => source.includes('accessor') || source.includes('#');

  describe.each(Object.entries(COMPILERS))('%s', (name, compile) => {
    test.each(cases.filter(([, source]) => name.includes('standard') || !onlyStandard(source)))(
      '%s',
      (_what, member, message) => {
        const source = `import { SingleRun, Locked } from '@guard/core'; export class Job { ${member} }`;
        const define = (): unknown => load(compile, source);
        expect(define).toThrow(expect.objectContaining({ code: 'invalid-argument' }));
        expect(define).toThrow(message);
      },
    );

    test('a class', () => {
      const source = "import { SingleRun } from '@guard/core'; @SingleRun() export class Job {}";
      expect(() => load(compile, source)).toThrow(/stands on the class Job/);
    });
  });

  test('a private method with a name is guarded', async () => {
    const source = `import { SingleRun } from '@guard/core';
      export class Job { ran = 0; @SingleRun({ name: 'job', key: 1 }) async #work() { this.ran += 1; } run() { return this.#work(); } }`;
    for (const name of ['tsc, standard', 'swc, standard'] as const) {
      const { Job } = load<{ Job: new () => { ran: number; run(): Promise<void> } }>(COMPILERS[name], source);
      setDefaultGuard(newGuard());
      const job = new Job();
      await job.run();
      await job.run();
      expect(job.ran).toBe(1);
    }
  });
});

describe('a decorated method', () => {
  test('[B123] that is skipped throws where its caller expects a value', async () => {
    class Sums {
      @SingleRun({ key: () => 1, onDuplicate: 'throw' }) async sum(): Promise<number> {
        return 42;
      }
      @SingleRun({ key: () => 1, onDuplicate: 'result' }) async big(): Promise<string> {
        return 'x'.repeat(70_000);
      }
    }
    setDefaultGuard(guard);
    const sums = new Sums();
    await expect(sums.sum()).resolves.toBe(42);
    await expect(sums.sum()).rejects.toMatchObject({ code: 'run-skipped', reason: 'completed', key: '1' });
    await sums.big();
    await expect(sums.big()).rejects.toMatchObject({ code: 'run-skipped', reason: 'completed' });
  });

  test('[B122] that returns a stream fails loudly instead of losing its lock', async () => {
    class Jobs {
      @SingleRun({ onDuplicate: 'throw' }) async observable(): Promise<unknown> {
        return { subscribe: () => undefined };
      }
    }
    setDefaultGuard(guard);
    await expect(new Jobs().observable()).rejects.toThrow(/returned a stream/);
  });

  test('whose key comes out as nothing is refused, and does not run without one', async () => {
    class Orders {
      @SingleRun({ key: (order: { id?: string }) => order.id as string }) async charge(
        _order: object,
      ): Promise<void> {
        throw new Error('must not run');
      }
      @Locked({ key: (id: string) => id }) async lock(_id: string): Promise<void> {
        throw new Error('must not run');
      }
    }
    setDefaultGuard(guard);
    await expect(new Orders().charge({})).rejects.toMatchObject({ code: 'invalid-argument' });
    await expect(new Orders().lock(undefined as never)).rejects.toMatchObject({ code: 'invalid-argument' });
    const task = guard.task('t', { key: (input: { id?: string }) => input.id as string }, () => 'no');
    await expect(task({})).rejects.toMatchObject({ code: 'invalid-argument' });
  });

  test('[B126] locks per call, not per process', async () => {
    let inside = 0;
    class Accounts {
      @Locked({ key: (id: string) => id }) async book(_id: string): Promise<void> {
        inside += 1;
        expect(inside).toBe(1);
        await new Promise(setImmediate);
        inside -= 1;
      }
    }
    setDefaultGuard(guard);
    const accounts = new Accounts();
    for (let round = 0; round < 50; round += 1) await Promise.all([accounts.book('a'), accounts.book('a')]);
    expect(inside).toBe(0);
  });

  test('takes the guard of its options before any other', async () => {
    const own = newGuard();
    class Jobs {
      @SingleRun({ guard: () => own, key: 1 }) async work(): Promise<void> {}
    }
    setDefaultGuard(guard);
    const jobs = new Jobs();
    bindGuard(jobs, guard);
    await jobs.work();
    expect((await own.runs.list()).runs).toHaveLength(1);
    expect((await guard.runs.list()).runs).toHaveLength(0);
  });

  test('[B120] two classes of one name cannot be one task of one guard', () => {
    const make = (): object => {
      class Job {
        @SingleRun({ window: '1h' }) async run(): Promise<void> {}
      }
      return new Job();
    };
    bindGuard(make(), guard);
    expect(() => bindGuard(make(), guard)).toThrow(/two methods are the task 'Job.run'/);
  });

  test('[B120] two subclasses that inherit one method cannot both be its task', () => {
    class Base {
      @SingleRun({ window: '1h' }) async run(): Promise<void> {}
    }
    class One extends Base {}
    class Two extends Base {}
    bindGuard(new One(), guard);
    bindGuard(new One(), guard);
    expect(() => bindGuard(new Two(), guard)).toThrow(/two methods are the task 'Base.run'/);
  });

  test('[B120] of a class without a name needs a name, and one that looks minified is warned of', async () => {
    setDefaultGuard(guard);
    const source = (name: string): string =>
      `import { SingleRun } from '@guard/core'; export const Job = (() => { const C = class ${name} { @SingleRun() async run() {} }; return C; })();`;
    type Job = { Job: new () => { run(): Promise<void> } };
    const warnings: string[] = [];
    const warn = jest
      .spyOn(process, 'emitWarning')
      .mockImplementation((text) => void warnings.push(String(text)));
    await new (load<Job>(COMPILERS['tsc, standard'], source('b')).Job)().run();
    await new (load<Job>(COMPILERS['tsc, standard'], source('b')).Job)().run();
    warn.mockRestore();
    expect(warnings).toEqual([expect.stringContaining("'b.run' looks minified")]);
    const anonymous = load<Job>(
      COMPILERS['tsc, standard'],
      source('').replace('const C = class', 'const C = (0, class').replace('{} }; return', '{} }); return'),
    ).Job;
    await expect(new anonymous().run()).rejects.toThrow(/has no name/);
  });

  test('an instance stays with its guard, and only a guard is bound', () => {
    const instance = {};
    bindGuard(instance, guard);
    expect(() => bindGuard(instance, newGuard())).toThrow(/another guard/);
    expect(() => bindGuard({}, {} as Guard)).toThrow(/must be a function/);
    expect(() => setDefaultGuard(null as never)).toThrow(/must be a guard/);
  });

  test('can be taken over with the arguments that its input kept, and compensated on its instance', async () => {
    const calls: unknown[] = [];
    class Orders {
      readonly shop = 'main';
      @SingleRun({
        name: 'charge',
        key: (id: string, _cents: number) => id,
        input: (id, cents) => [id, cents],
        compensate(this: Orders, run, id, cents) {
          calls.push(['undo', this.shop, run.key, id, cents]);
        },
      })
      async charge(id: string, cents: number): Promise<void> {
        calls.push(['charge', this.shop, currentRun()?.trigger, id, cents]);
        if (cents < 0) throw new Error('boom');
      }
    }
    const shared = newGuard();
    const orders = new Orders();
    bindGuard(orders, shared);
    await orders.charge('a', 5);
    await expect(orders.charge('b', -5)).rejects.toThrow('boom');
    expect(calls).toEqual([
      ['charge', 'main', 'call', 'a', 5],
      ['charge', 'main', 'call', 'b', -5],
      ['undo', 'main', 'b', 'b', -5],
    ]);
    expect((await shared.runs.get('charge', 'a'))?.run.input).toBe('["a",5]');
    await shared.runs.retry('charge', 'b', { note: 'again' });
    expect((await shared.runs.get('charge', 'b'))?.run).toMatchObject({
      state: 'pending',
      input: '["b",-5]',
    });
  });
});

describe('plain functions', () => {
  test('are guarded like methods', async () => {
    setDefaultGuard(guard);
    const sum = singleRun(
      { name: 'sum', key: (a: number) => a, onDuplicate: 'result' },
      async (a: number, b: number) => a + b,
    );
    await expect(sum(1, 2)).resolves.toBe(3);
    await expect(sum(1, 9)).resolves.toBe(3);
    expect(sum.length).toBe(2);
    const key = locked({ key: (id: string) => `account:${id}` }, async (_id: string) => currentLock()?.key);
    await expect(key('a')).resolves.toBe('account:a');
  });

  test('need a name', () => {
    expect(() => singleRun({} as never, async () => undefined)).toThrow(/name must be/);
    expect(() => locked({} as never, async () => undefined)).toThrow(/name must be/);
    expect(() => locked({ name: 'x' }, 'work' as never)).toThrow(/work must be a function/);
  });
});
