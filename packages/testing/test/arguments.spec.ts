/** A typing error in a test must not look like a finding: what is not known is refused, and named. */
import { GuardError, kvRuns, memoryLocks, memoryState, systemClock } from '@guard/core';
import {
  describeLockBackend,
  describeRunStore,
  describeStateStore,
  FaultPlan,
  faultyBackend,
  faultyState,
  SeededRandom,
  sideBySide,
  simulate,
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
    ['to run until nothing', /promise must be a promise/, () => clock.runUntil(undefined as never)],
    ['a limit in words', /withinMs must be/, () => clock.runUntil(Promise.resolve(), '1h' as never)],
  ])('%s', (_what, message, call) => expectRefused(message, call));
});

describe('Chance refuses', () => {
  it.each<Refusal>([
    ['half a seed', /seed must be a whole number/, () => new SeededRandom(0.5)],
    ['bounds the wrong way round', /max must be a whole number/, () => new SeededRandom(1).integer(3, 1)],
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
  ])('%s', (_what, message, call) => expectRefused(message, call));
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
