import { FaultPlan, PlayedFaultError, VirtualClock, type Request } from '@guard/testing';

type Verb = 'read' | 'write';

/** A server that remembers what reached it, and answers each operation with its own name. */
function server() {
  const executed: string[][] = [];
  const request = (...operations: string[]): Request<string, string> => ({
    operations,
    execute: (some) => {
      executed.push([...some]);
      return Promise.resolve(some.map((name) => `${name} done`));
    },
    failed: () => 'failed',
  });
  return { executed, request };
}

/** What a promise has come to, without waiting for it. */
function watch(promise: Promise<unknown>): { state: unknown } {
  const seen: { state: unknown } = { state: 'pending' };
  promise.then(
    (answer) => (seen.state = answer),
    (error: unknown) => (seen.state = error),
  );
  return seen;
}

describe('FaultPlan', () => {
  it('passes requests through and counts calls and operations per verb [C1]', async () => {
    const plan = new FaultPlan<Verb>();
    const { request, executed } = server();
    expect(await plan.send('write', request('a', 'b'))).toEqual(['a done', 'b done']);
    await plan.send('read', request('a'));
    expect(executed).toEqual([['a', 'b'], ['a']]);
    expect(plan.traffic('write')).toEqual({ calls: 1, operations: 2 });
    expect(plan.total()).toEqual({ calls: 2, operations: 3 });
    plan.forgetTraffic();
    expect(plan.total()).toEqual({ calls: 0, operations: 0 });
  });

  it('cuts: nothing is executed, nobody answers', async () => {
    const clock = new VirtualClock();
    const plan = new FaultPlan<Verb>(clock);
    const { request, executed } = server();
    plan.play({ type: 'cut' }, { verbs: ['write'] });
    const seen = watch(plan.send('write', request('a')));
    expect(await plan.send('read', request('b'))).toEqual(['b done']);
    await clock.advance(60_000);
    expect(seen.state).toBe('pending');
    expect(executed).toEqual([['b']]);
  });

  it('loses the reply of exactly the n-th call', async () => {
    const clock = new VirtualClock();
    const plan = new FaultPlan<Verb>(clock);
    const { request, executed } = server();
    const fault = plan.play({ type: 'lose-reply' }, { verbs: ['write'], skip: 1, times: 1 });
    const seen = ['1', '2', '3'].map((name) => watch(plan.send('write', request(name))));
    await clock.settle();
    expect(seen.map(({ state }) => state)).toEqual([['1 done'], 'pending', ['3 done']]);
    expect(executed).toHaveLength(3);
    expect(fault.met).toBe(1);
  });

  it.each([true, false])('resets at once, executed: %s', async (isExecuted) => {
    const plan = new FaultPlan<Verb>();
    const { request, executed } = server();
    plan.play({ type: 'reset', executed: isExecuted });
    await expect(plan.send('write', request('a'))).rejects.toThrow(PlayedFaultError);
    expect(executed).toHaveLength(isExecuted ? 1 : 0);
  });

  it('delays the way there and the way back, and adds delays up', async () => {
    const clock = new VirtualClock();
    const plan = new FaultPlan<Verb>(clock);
    const { request, executed } = server();
    plan.play({ type: 'delay', requestMs: 100 });
    plan.play({ type: 'delay', requestMs: () => 50, replyMs: 200 });
    const seen = watch(plan.send('write', request('a')));
    await clock.advance(149);
    expect(executed).toEqual([]);
    await clock.advance(1);
    expect(executed).toEqual([['a']]);
    await clock.advance(199);
    expect(seen.state).toBe('pending');
    await clock.advance(1);
    expect(seen.state).toEqual(['a done']);
  });

  it.each([
    ['reject' as const, expect.any(PlayedFaultError)],
    ['never' as const, 'pending'],
  ])('executes later, after the caller was left alone (%s) [B52]', async (answer, expected) => {
    const clock = new VirtualClock();
    const plan = new FaultPlan<Verb>(clock);
    const { request, executed } = server();
    plan.play({ type: 'execute-later', afterMs: 2_000, answer }, { times: 1 });
    const seen = watch(plan.send('write', request('ghost')));
    await clock.advance(1_999);
    expect(seen.state).toEqual(expected);
    expect(executed).toEqual([]);
    await clock.advance(1);
    expect(executed).toEqual([['ghost']]);
  });

  it('executes twice and answers with the second answer [B50]', async () => {
    const clock = new VirtualClock();
    const plan = new FaultPlan<Verb>(clock);
    const answers = ['granted', 'there already'];
    plan.play({ type: 'execute-twice', afterMs: 300 }, { times: 1 });
    const request = { operations: ['a'], execute: () => Promise.resolve([answers.shift()]) };
    const seen = watch(plan.send('write', request));
    await clock.advance(300);
    expect(seen.state).toEqual(['there already']);
  });

  it('executes a doubled packet twice and answers at once with the first answer [B50]', async () => {
    const clock = new VirtualClock();
    const plan = new FaultPlan<Verb>(clock);
    const answers = ['granted', 'there already'];
    plan.play({ type: 'execute-twice', afterMs: 300, answer: 'first' }, { times: 1 });
    const request = { operations: ['a'], execute: () => Promise.resolve([answers.shift()]) };
    expect(await plan.send('write', request)).toEqual(['granted']);
    expect(answers).toEqual(['there already']);
    await clock.advance(300);
    expect(answers).toEqual([]);
  });

  it('fails single operations, executed or not', async () => {
    const plan = new FaultPlan<Verb>();
    const { request, executed } = server();
    const isB = (name: unknown): boolean => name === 'b';
    const unexecuted = plan.play({ type: 'fail', executed: false, operations: isB });
    expect(await plan.send('write', request('a', 'b', 'c'))).toEqual(['a done', 'failed', 'c done']);
    expect(await plan.send('write', request('b'))).toEqual(['failed']);
    unexecuted.stop();
    plan.play({ type: 'fail', executed: true, operations: isB });
    expect(await plan.send('write', request('a', 'b', 'c'))).toEqual(['a done', 'failed', 'c done']);
    expect(executed).toEqual([
      ['a', 'c'],
      ['a', 'b', 'c'],
    ]);
  });

  it('plays the oldest of several faults, together with the delays', async () => {
    const clock = new VirtualClock();
    const plan = new FaultPlan<Verb>(clock);
    const { request } = server();
    const first = plan.play({ type: 'reset', executed: false, error: new Error('first') }, { times: 1 });
    const second = plan.play({ type: 'reset', executed: false, error: new Error('second') });
    plan.play({ type: 'delay', requestMs: 10 });
    const seen = [watch(plan.send('write', request('a'))), watch(plan.send('write', request('b')))];
    await clock.settle();
    expect(seen[0]!.state).toBe('pending');
    await clock.advance(10);
    expect(seen.map(({ state }) => (state as Error).message)).toEqual(['first', 'second']);
    expect([first.met, second.met]).toEqual([1, 1]);
    plan.clear();
    expect(await plan.send('write', request('c'))).toEqual(['c done']);
  });
});
