/** Guards that are registered wrongly, beside each other, or not as it looks. */
import { createGuard, memoryLocks, memoryState, SingleRun } from '@guard/core';
import {
  getGuardToken,
  GuardedBy,
  GuardModule,
  type GuardModuleOptions,
  GuardRecorder,
  GuardTestingModule,
} from '@guard/nestjs';
import { Controller, SetMetadata } from '@nestjs/common';
import { bootError, closeAll, KeptLogger, started } from './support/app.js';

afterEach(closeAll);

const parts = (): GuardModuleOptions => ({ locks: memoryLocks(), state: memoryState() });

describe('refused with the name of the option', () => {
  test.each([
    ['imports', { useFactory: parts, imports: 5 }],
    ['inject', { useFactory: parts, inject: 'TOKEN' }],
  ])('%s that is no list', (name, options) => {
    expect(() => GuardModule.forRootAsync(options as never)).toThrow(
      new RegExp(`\\[invalid-argument\\] ${name} must be a list`),
    );
  });

  test.each([['name'], ['global']])('%s in what a factory answers: it is too late there', async (name) => {
    const useFactory = (): GuardModuleOptions => ({ ...parts(), [name]: 'x' });
    const { message } = await bootError({ imports: [GuardModule.forRootAsync({ useFactory })] });
    expect(message).toMatch(new RegExp(`${name} belongs beside useFactory`));
  });

  test.each([['settle'], [[7]], [null]])('start.tasks that are no names: %p', async (tasks) => {
    const error = await bootError({
      imports: [GuardModule.forRoot({ ...parts(), start: { tasks } as never })],
    });
    expect(error).toMatchObject({ code: 'invalid-argument' });
    expect(error.message).toMatch(/start.tasks must be a list of task names/);
  });

  test.each([
    ['off', 'yes'],
    ['recorder', {}],
    ['recorder', null],
    ['clock', 5],
  ])('of a guard for tests: %s %p', (name, value) => {
    expect(() => GuardTestingModule.forRoot({ [name]: value })).toThrow(
      new RegExp(`\\[invalid-argument\\] ${name} must be`),
    );
  });

  test('@GuardedBy on anything but a class', () => {
    const onMethod = GuardedBy('fast') as unknown as MethodDecorator;
    const onMember = (): unknown => {
      class Rates {
        @onMethod async load(): Promise<void> {}
      }
      return Rates;
    };
    const onStatic = (): unknown => {
      class Rates {
        @onMethod static async load(): Promise<void> {}
      }
      return Rates;
    };
    for (const define of [onMember, onStatic])
      expect(define).toThrow(/@GuardedBy\('fast'\) stands on classes/);
    const standard = GuardedBy('fast') as unknown as (type: unknown, context: unknown) => void;
    expect(() => standard(class {}, { kind: 'class' })).not.toThrow();
    expect(() => standard(() => 1, { kind: 'method' })).toThrow(/stands on classes/);
  });
});

describe('one task on two guards', () => {
  class Slow {
    @SingleRun({ name: 'settle' }) async settle(): Promise<void> {}
  }
  @GuardedBy('fast')
  class Fast {
    @SingleRun({ name: 'settle' }) async settle(): Promise<void> {}
  }
  const both = (one: GuardModuleOptions, two: GuardModuleOptions): object => ({
    imports: [GuardModule.forRoot(one), GuardModule.forRoot({ ...two, name: 'fast' })],
    providers: [Slow, Fast],
  });

  test('of one store and namespace is refused: the runs of one would count as done for the other', async () => {
    const shared = { ...parts(), namespace: 'billing' };
    const { message } = await bootError(both(shared, { ...shared, locks: memoryLocks() }));
    expect(message).toMatch(/Slow.settle and Fast.settle are both the task 'settle': give each a 'name'/);
  });

  test('of two stores, or two namespaces, is two tasks', async () => {
    const shared = { ...parts(), namespace: 'billing' };
    await started(both(shared, { ...parts(), namespace: 'billing' }));
    await started(both(shared, { ...shared, namespace: 'fast' }));
  });
});

describe('[B123] [S8] whoever is answered by a method', () => {
  const message = SetMetadata('microservices:handler_type', 1);
  const event = SetMetadata('microservices:handler_type', 2);
  const query = SetMetadata('graphql:resolver_type', 'Query');

  test('is not told by a skipped call that it has run: messages and queries', async () => {
    @Controller()
    class Orders {
      @message @SingleRun() async charge(): Promise<void> {}
      @SingleRun() @query async total(): Promise<void> {}
      @SingleRun() @event async happened(): Promise<void> {}
      @message @SingleRun({ onDuplicate: 'skip' }) async meant(): Promise<void> {}
    }
    const error = await bootError({ imports: [GuardModule.forRoot(parts())], controllers: [Orders] });
    expect(error.message.split('\n- ').slice(1)).toEqual([
      expect.stringContaining('Orders.charge answers a message, and a skipped call would answer as if'),
      expect.stringContaining('Orders.total answers a query of GraphQL, and a skipped call'),
    ]);
  });

  test('and a queue does not take a skipped job for one that is done', async () => {
    @SetMetadata('bullmq:processor_metadata', { name: 'invoices' })
    class Invoices {
      @SingleRun({ key: ({ id }: { id: string }) => id }) async process(_job: {
        id: string;
      }): Promise<void> {}
      @SingleRun() async tidy(): Promise<void> {}
    }
    const error = await bootError({ imports: [GuardModule.forRoot(parts())], providers: [Invoices] });
    expect(error.message.split('\n- ').slice(1)).toEqual([
      expect.stringContaining('Invoices.process answers a queue, and a skipped call would answer as if'),
    ]);
  });
});

test('another guard under the token of one is told of: methods are still guarded by the first', async () => {
  const other = createGuard(parts());
  const logger = new KeptLogger();
  const providers = [{ provide: getGuardToken(), useValue: other }];
  await started({ imports: [GuardModule.forRoot(parts())], providers }, logger);
  expect(logger.warned).toEqual([
    expect.stringMatching(/injected as the guard 'default' is not .* override getGuardOptionsToken\(\)/),
  ]);
  await other.close();
});

test('a guard that cannot start is named in the log', async () => {
  const logger = new KeptLogger();
  const fast = GuardModule.forRoot({ ...parts(), name: 'fast', start: { tasks: ['nobody'] } });
  const both = [GuardModule.forRoot(parts()), fast];
  await expect(started({ imports: both }, logger)).rejects.toThrow(/nobody/);
  expect(logger.errors).toEqual([expect.stringMatching(/^the guard 'fast' could not start: .*nobody/)]);
});

test('switched off, a run knows the key that it would have had', async () => {
  const recorder = new GuardRecorder();
  class Orders {
    @SingleRun({ key: (id: string) => id }) async charge(_id: string): Promise<void> {}
  }
  const app = await started({
    imports: [GuardTestingModule.forRoot({ off: true, recorder })],
    providers: [Orders],
  });
  await app.get(Orders).charge('7');
  await app.get(Orders).charge('7');
  const keys = recorder.events('run-completed').map(({ run }) => run.key);
  expect(keys).toEqual([expect.stringMatching(/^7 ./), expect.stringMatching(/^7 ./)]);
});
