/** A typing error in a test must not look like a finding: what is not known is refused, and named. */
import { readFileSync } from 'node:fs';
import { GuardError, kvRuns, memoryLocks, memoryState, systemClock } from '@guard/core';
import {
  describeLockBackend,
  describeRunStore,
  describeStateStore,
  everydayUse,
  everythingSaid,
  everythingTold,
  failureOf,
  FaultPlan,
  faultyBackend,
  faultyState,
  findOverlaps,
  findTokenDisorder,
  HoldLog,
  reasons,
  secretsIn,
  SeededRandom,
  sideBySide,
  simulate,
  until,
  VirtualClock,
  type TestRunner,
} from '@guard/testing';

const none = (): void => undefined;
const runner: TestRunner = { describe: none, it: none, skip: none };
const create = (): never => {
  throw new Error('no case is run here');
};
const locks = { runner, name: 'mine', traits: memoryLocks().traits, create };
const state = { runner, name: 'mine', traits: memoryState().traits, create };
const runs = { runner, name: 'mine', traits: kvRuns(memoryState()).traits, create };

type Refusal = readonly [what: string, message: RegExp, call: () => unknown];

async function expectRefused(message: RegExp, call: () => unknown): Promise<void> {
  const refused = await Promise.resolve()
    .then(call)
    .catch((error: unknown) => error);
  expect(GuardError.is(refused, 'invalid-argument')).toBe(true);
  expect((refused as Error).message).toMatch(message);
}

describe('A virtual clock refuses', () => {
  const clock = new VirtualClock();
  it.each<Refusal>([
    ['text', /ms must be a finite number of at least 0, got "5"/, () => clock.advance('5' as never)],
    ['endless time', /ms must be/, () => clock.advance(Infinity)],
    ['a step that is no number', /ms must be/, () => clock.shiftWall(NaN)],
    ['a sleep back in time', /ms must be/, () => clock.suspend(-1)],
    ['a block of text', /ms must be/, () => clock.block('1' as never)],
    ['a timer in words', /delayMs must be/, () => clock.setTimer(none, '5' as never)],
    ['a start in words', /options\.monoMs must be/, () => new VirtualClock({ monoMs: '1' as never })],
    ['an unknown option', /no option 'mono'/, () => new VirtualClock({ mono: 1 } as never)],
    ['a timer of nothing', /run must be a function/, () => clock.setTimer(undefined as never, 5)],
    [
      'a timer with a typing error',
      /no option 'reff'/,
      () => clock.setTimer(none, 5, { reff: false } as never),
    ],
    ['to yield to nothing', /run must be a function/, () => clock.yield(5 as never)],
    ['to run until nothing', /promise must be a promise/, () => clock.runUntil(undefined as never)],
    ['a limit in words', /withinMs must be/, () => clock.runUntil(Promise.resolve(), '1h' as never)],
  ])('%s', (_what, message, call) => expectRefused(message, call));
});

describe('Chance refuses', () => {
  it.each<Refusal>([
    ['half a seed', /seed must be a whole number/, () => new SeededRandom(0.5)],
    ['bounds the wrong way round', /max must be a whole number/, () => new SeededRandom(1).integer(3, 1)],
    [
      'to pick of nothing',
      /choices must be an array of at least one/,
      () => new SeededRandom(1).pick([] as never),
    ],
    ['to pick of a text', /choices must be an array/, () => new SeededRandom(1).pick('abc' as never)],
    ['a simulation without a seed', /options\.seed must be/, () => simulate({} as never)],
    ['no simulation at all', /options must be an object/, () => simulate(undefined as never)],
    ['no nodes', /options\.nodes must be/, () => simulate({ seed: 1, nodes: 0 })],
    ['half a step', /options\.steps must be/, () => simulate({ seed: 1, steps: 0.5 })],
    [
      'an unknown fault',
      /options\.faults must be .*"typo"/,
      () => simulate({ seed: 1, faults: ['typo' as never] }),
    ],
    ['faults that are no list', /options\.faults/, () => simulate({ seed: 1, faults: 'cut' as never })],
    ['a core in parts', /no function 'createGuard'/, () => simulate({ seed: 1, core: {} as never })],
  ])('%s', (_what, message, call) => expectRefused(message, call));
});

describe('Faults refuse', () => {
  const plan = new FaultPlan<'read'>(systemClock, ['read']);
  const faulty = faultyBackend(memoryLocks());
  const { store, ...faultyStore } = faultyState(memoryState());
  it.each<Refusal>([
    ['no backend', /inner must be a LockBackend/, () => faultyBackend(undefined as never)],
    ['a store for a backend', /no function 'acquire'/, () => faultyBackend(store as never)],
    ['no store', /inner must be a StateStore/, () => faultyState({} as never)],
    ['a clock that is none', /options\.clock/, () => faultyBackend(memoryLocks(), { clock: {} as never })],
    ['an unknown verb', /"aquire"/, () => faulty.loseReply('aquire' as never)],
    ['the reply before the next', /nth must be/, () => faulty.loseReply('acquire', 0)],
    ['an unknown verb of state', /"raed"/, () => faultyStore.loseReply('raed' as never)],
    ['an unknown notice', /fault\.type must be/, () => faulty.playNotices({ type: 'lose' } as never)],
    ['a notice that is late for no time', /fault\.ms/, () => faulty.playNotices({ type: 'delay' } as never)],
    ['an unknown fault', /fault\.type must be/, () => plan.play({ type: 'cutt' } as never)],
    ['a delay in words', /fault\.requestMs/, () => plan.play({ type: 'delay', requestMs: '1s' as never })],
    [
      'a field of another fault',
      /no option 'afterMs'/,
      () => plan.play({ type: 'cut', afterMs: 1 } as never),
    ],
    ['no time of execution', /fault\.afterMs/, () => plan.play({ type: 'execute-later' } as never)],
    ['an unknown verb in a scope', /"raed"/, () => plan.play({ type: 'cut' }, { verbs: ['raed' as never] })],
    ['no times', /scope\.times must be/, () => plan.play({ type: 'cut' }, { times: 0 })],
    [
      'a text for verbs',
      /verbs must be an array of texts/,
      () => new FaultPlan(systemClock, 'read' as never),
    ],
    [
      'a number of any verb',
      /scope\.verbs/,
      () => new FaultPlan().play({ type: 'cut' }, { verbs: [5 as never] }),
    ],
    ['traffic of an unknown verb', /verb must be 'read', got "raed"/, () => plan.traffic('raed' as never)],
    ['traffic of no verb', /verb must be a text/, () => new FaultPlan().traffic(undefined as never)],
    ['to look whether it plays on one', /verb must be/, () => plan.isPlaying('raed' as never)],
    ['to count half an operation', /operations must be/, () => plan.count('read', 0.5)],
    ['to send nothing', /request must be a Request/, () => plan.send('read', undefined as never)],
    [
      'to send no operations',
      /request\.operations/,
      () => plan.send('read', { execute: async () => [] } as never),
    ],
    ['a reset that is executed or not', /fault\.executed/, () => plan.play({ type: 'reset' } as never)],
    [
      'a text for an error',
      /fault\.error must be an Error/,
      () => plan.play({ type: 'reset', executed: true, error: 'down' as never }),
    ],
    ['a text for the error of a server', /must be an Error/, () => faulty.down('down' as never)],
  ])('%s', (_what, message, call) => expectRefused(message, call));
});

describe('What waits and checks refuses', () => {
  const event = { atMs: 1, type: 'enter', key: 'k', holder: 'a', token: 1n } as const;
  const events = (over: object): never => [event, { ...event, ...over }] as never;
  const nobody = {} as never;
  it.each<Refusal>([
    ['to wait in words', /withinMs must be/, () => until('x', () => false, '5s' as never)],
    ['to wait for ever', /withinMs must be/, () => until('x', () => false, NaN)],
    ['to look with an answer', /look must be a function/, () => until('x', true as never)],
    ['to wait for nobody knows what', /what must be a text/, () => until(undefined as never, () => true)],
    ['what is no promise', /promise must be a promise/, () => failureOf(5 as never)],
    ['an event that is none', /events\[0\]\.atMs/, () => findOverlaps([undefined as never])],
    ['an event without a key', /events\[1\]\.key/, () => findOverlaps(events({ key: undefined }))],
    ['an event of nobody', /events\[1\]\.holder/, () => findOverlaps(events({ holder: 5 }))],
    [
      'a token as a text, of which 9 is more than 10',
      /events\[1\]\.token must be a bigint/,
      () => findTokenDisorder(events({ token: '10' })),
    ],
    ['grants of a number', /holder must be a text/, () => new HoldLog().grants(5 as never)],
    ['to look for no secret', /secrets must be an array of at least one/, () => secretsIn('x', [])],
    ['to use no guard', /first must be a Guard/, () => everydayUse(nobody, nobody)],
    ['to listen to no guard', /guard must be a Guard/, () => everythingTold(nobody)],
    ['to have no guard in trouble', /guard must be a Guard/, () => everythingSaid(nobody)],
  ])('%s', (_what, message, call) => expectRefused(message, call));

  it('reads the reasons of an error that Node itself made', () => {
    const made = (() => {
      try {
        return readFileSync('/none/such');
      } catch (error) {
        return error;
      }
    })();
    expect(reasons(new Error('a', { cause: made }))).toMatch(/^a < ENOENT/);
  });
});

describe('A fault of the wrong kind while it is played', () => {
  it('is told to whoever sent the request: a drawn delay that is no time', async () => {
    const plan = new FaultPlan<'read'>(systemClock, ['read']);
    plan.play({ type: 'delay', requestMs: () => '5' as never });
    await expectRefused(/a drawn delay must be a finite number/, () =>
      plan.send('read', { operations: [1], execute: async () => [1] }),
    );
  });

  it('ends no process: a request that throws when it is executed later', async () => {
    const clock = new VirtualClock();
    const plan = new FaultPlan<'read'>(clock, ['read']);
    plan.play({ type: 'execute-later', afterMs: 5, answer: 'reject' });
    let executed = 0;
    const execute = (): never => {
      executed += 1;
      throw new Error('at once');
    };
    await expect(plan.send('read', { operations: [1], execute })).rejects.toThrow('executed later');
    await clock.advance(5);
    expect(executed).toBe(1);
  });
});

describe('A contract suite refuses', () => {
  it.each<Refusal>([
    ['nothing', /options must be an object/, () => describeLockBackend(undefined as never)],
    ['no runner', /options\.runner must be a TestRunner/, () => describeLockBackend({} as never)],
    ['no runner for state', /options\.runner must be/, () => describeStateStore({} as never)],
    ['no runner for runs', /options\.runner must be/, () => describeRunStore({} as never)],
    [
      'a runner without skip',
      /no function 'skip'/,
      () => describeRunStore({ ...runs, runner: { describe: none, it: none } as never }),
    ],
    ['no name', /options\.name must be/, () => describeLockBackend({ ...locks, name: '' })],
    [
      'no place',
      /options\.create must be/,
      () => describeStateStore({ ...state, create: undefined as never }),
    ],
    ['no traits', /options\.traits must be/, () => describeRunStore({ ...runs, traits: undefined as never })],
    [
      'traits in part',
      /options\.traits\.push must be a boolean/,
      () => describeLockBackend({ ...locks, traits: { fifo: true } as never }),
    ],
    [
      'an unknown profile',
      /options\.profile must be 'quick' or 'full', got "ful"/,
      () => describeLockBackend({ ...locks, profile: 'ful' as never }),
    ],
    [
      'a timeout in words',
      /options\.caseTimeoutMs/,
      () => describeRunStore({ ...runs, caseTimeoutMs: '1m' as never }),
    ],
    [
      'an unknown option',
      /no option 'virtual'/,
      () => describeStateStore({ ...state, virtual: true } as never),
    ],
    ['none at a time', /options\.atATime must be/, () => sideBySide(runner, { atATime: 0 })],
  ])('%s', (_what, message, call) => expectRefused(message, call));

  it('a profile of the environment that does not exist', async () => {
    const before = process.env['GUARD_PROFILE'];
    try {
      process.env['GUARD_PROFILE'] = 'ful';
      await expectRefused(/GUARD_PROFILE must be 'quick' or 'full', got "ful"/, () =>
        describeLockBackend(locks),
      );
      process.env['GUARD_PROFILE'] = '';
      describeLockBackend(locks);
    } finally {
      if (before === undefined) delete process.env['GUARD_PROFILE'];
      else process.env['GUARD_PROFILE'] = before;
    }
  });
});
