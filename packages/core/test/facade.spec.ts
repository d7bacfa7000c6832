import {
  memoryLocks,
  memoryState,
  createGuard,
  fingerprint,
  Locked,
  SingleRun,
  systemClock,
} from '../src/index.js';

const code = expect.objectContaining({ code: 'invalid-argument' });
const make = (options: object): unknown => createGuard({ locks: memoryLocks(), ...options });

describe('what is no guard', () => {
  it.each([
    ['no lock backend', { locks: undefined }],
    ['a number for locks', { locks: 5 }],
    ['an empty object for locks', { locks: {} }],
    ['locks for a state store', { state: memoryLocks() }],
    ['state for a run store', { runs: memoryState() }],
    ['an empty clock', { clock: {} }],
    ['an empty policy', { policy: {} }],
    ['an unknown option', { lock: memoryLocks() }],
    ['a sweep without time between', { sweepInterval: 0 }],
    ['a negative retention', { retain: { runs: -1 } }],
    ['an unknown answer to an outage', { onUnavailable: 'run-unguarded' }],
    ['null for a duration', { grace: null }],
    ['null for a part', { state: null }],
  ])('is refused before anything is asked: %s', (_, options) => {
    expect(() => make(options)).toThrow(code);
  });
});

describe('listeners', () => {
  it('are refused for events that do not exist, and where they are no functions', () => {
    const guard = createGuard({ locks: memoryLocks() });
    expect(() => guard.on('lock-grantd' as never, () => undefined)).toThrow(code);
    expect(() => guard.on('lock-granted', 5 as never)).toThrow(code);
  });

  it('harm nobody by throwing or rejecting, and are told of', async () => {
    const guard = createGuard({ locks: memoryLocks() });
    const told: string[] = [];
    guard.on('error', ({ during }) => told.push(during));
    guard.on('lock-granted', () => {
      throw new Error('at once');
    });
    const rejecting = (): unknown => Promise.reject(new Error('later'));
    guard.on('lock-granted', rejecting);
    await guard.withLock('a', () => undefined);
    await new Promise<void>((resolve) => systemClock.yield(resolve));
    expect(told).toEqual(['a listener of lock-granted', 'a listener of lock-granted']);
    await guard.close();
  });
});

describe('options', () => {
  it('are refused where they are null, which is not the same as left out', async () => {
    const guard = createGuard({ locks: memoryLocks(), state: memoryState() });
    const refused = { code: 'invalid-argument', message: expect.stringContaining('must not be null') };
    await expect(guard.acquire('k', { ttl: null } as never)).rejects.toMatchObject(refused);
    for (const name of ['wait', 'settleTimeout', 'letGoAfter']) {
      await expect(guard.run('t', { [name]: null }, () => 'no')).rejects.toMatchObject(refused);
    }
    await expect(guard.state.set('k', 1, { ttl: null } as never)).rejects.toMatchObject(refused);
    await guard.close();
  });

  it('of the backends in memory are refused where they do not exist', () => {
    expect(() => memoryLocks({ ttl: 1 } as never)).toThrow(code);
    expect(() => memoryState({ ttl: 1 } as never)).toThrow(code);
  });

  it('that are lists are refused where something was left out of them', async () => {
    const guard = createGuard({ locks: memoryLocks() });
    const sparse = Array<string>(2).fill('a', 1);
    await expect(guard.acquire(sparse)).rejects.toMatchObject({ code: 'invalid-argument' });
    await expect(guard.acquireAll(sparse)).rejects.toMatchObject({ code: 'invalid-argument' });
    await guard.close();
  });
});

describe('[S6] a backend or a policy that does not keep its contract', () => {
  it.each([
    ['no answer', [null]],
    ['an answer that is none', ['granted']],
    ['a grant without a token', [{ status: 'granted' }]],
  ])('is a fault, not a grant and not a hang: %s', async (_title, answers) => {
    const inner = memoryLocks();
    const locks = Object.assign(Object.create(inner) as typeof inner, {
      atOnce: undefined,
      acquire: () => Promise.resolve(answers as never),
    });
    const guard = createGuard({ locks });
    await expect(guard.tryAcquire('k', { ttl: '1s' })).rejects.toMatchObject({ code: 'unavailable' });
    await guard.close();
  });

  it('a policy that answers without a promise is one that lets nothing through', async () => {
    const locks = Object.assign(Object.create(memoryLocks()) as ReturnType<typeof memoryLocks>, {
      atOnce: undefined,
    });
    const guard = createGuard({ locks, policy: { execute: () => undefined as never } });
    await expect(guard.tryAcquire('k', { ttl: '1s' })).rejects.toMatchObject({ code: 'unavailable' });
    await guard.close();
  });
});

describe('values', () => {
  it('that JSON would turn into something else are refused, not lost', async () => {
    const guard = createGuard({ locks: memoryLocks(), state: memoryState() });
    for (const value of [
      { x: NaN },
      [new Map([[1, 2]])],
      { f: () => 1 },
      new Set(),
      { deep: [Infinity] },
      Symbol('s'),
    ]) {
      await expect(guard.state.set('a', value)).rejects.toMatchObject({ code: 'invalid-argument' });
    }
    await guard.state.set('a', { at: new Date(0), nothing: undefined });
    expect((await guard.state.get('a'))?.value).toEqual({ at: '1970-01-01T00:00:00.000Z' });
    expect(() => fingerprint(new Map([[1, 2]]))).toThrow(code);
    expect(fingerprint({ b: 1, a: [2] })).toBe(fingerprint({ a: [2], b: 1 }));
  });
});

describe('a value in the store that no guard wrote', () => {
  it('[S6] is an error that names its key, for whoever reads, lists or watches it', async () => {
    const state = memoryState();
    const guard = createGuard({ locks: memoryLocks(), state, namespace: 'n' });
    const errors: unknown[] = [];
    guard.on('error', ({ error }) => void errors.push(error));
    await guard.state.watch('', () => undefined);
    await guard.state.set('rate', 1);
    const { entries } = await state.scan('', undefined, 1);
    const spoil = {
      key: entries[0]!.key,
      value: 'none',
      expect: 'any',
      writeId: 'by hand',
      ttl: 'none',
    } as const;
    await state.write([spoil]);
    const unreadable = {
      code: 'unavailable',
      key: 'rate',
      message: expect.stringContaining('value of rate'),
    };
    await expect(guard.state.get('rate')).rejects.toMatchObject(unreadable);
    const listed = guard.state.list('')[Symbol.asyncIterator]();
    await expect(listed.next()).rejects.toMatchObject(unreadable);
    expect(errors).toMatchObject([unreadable]);
    expect(await guard.state.delete('rate')).toBe(true);
    await state.write([{ ...spoil, writeId: 'by hand again' }]);
    await guard.state.set('rate', 2);
    expect(await guard.state.get('rate')).toMatchObject({ value: 2 });
    await guard.close();
  });
});

describe('decorators without parentheses', () => {
  it('[B116] are refused while the class is being defined, as a legacy compiler calls them', () => {
    const prototype = { run: async (): Promise<void> => undefined };
    const descriptor = Object.getOwnPropertyDescriptor(prototype, 'run')!;
    for (const decorator of [SingleRun, Locked] as unknown as ((...args: unknown[]) => unknown)[]) {
      expect(() => decorator(prototype, 'run', descriptor)).toThrow(code);
      expect(() => decorator(prototype.run, { kind: 'method', name: 'run' })).toThrow(code);
    }
  });
});
