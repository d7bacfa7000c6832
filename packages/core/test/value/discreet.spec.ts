/** What is told of an error that came out of a client library. */
import { inspect } from 'node:util';
import { GuardError } from '@guard/core';
import { discreet } from '../../src/value/discreet.js';

class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

function everythingOf(error: unknown): string {
  return inspect(error, { depth: 10, showHidden: true });
}

describe('an error with nothing to hide', () => {
  test.each([
    ['a plain one', new Error('connection reset')],
    [
      'one with a code',
      Object.assign(new Error('refused'), { code: 'ECONNREFUSED', errno: -111, port: 6379 }),
    ],
    ['one with a cause', new Error('no answer', { cause: new RangeError('x') })],
    ['one of many', new AggregateError([new Error('a'), new Error('b')], 'all refused')],
    ['one of Guard', new GuardError('unavailable', 'gone', { cause: new Error('x'), key: 'k' })],
  ])('is passed on as it is: %s', (_name, error) => {
    expect(discreet(error)).toBe(error);
  });
});

describe('[S6] what an error should not show is left out', () => {
  const refused = (): Error =>
    Object.assign(new ReplyError('WRONGPASS invalid username-password pair'), {
      code: 'WRONGPASS',
      command: { name: 'auth', args: ['default', 'geheim'] },
    });

  test('the arguments of a command, and nothing else', () => {
    const told = discreet(refused());
    expect(told).toBeInstanceOf(ReplyError);
    expect(told).toMatchObject({ name: 'ReplyError', code: 'WRONGPASS' });
    expect((told as Error).message).toBe('WRONGPASS invalid username-password pair');
    expect((told as Error).stack).toContain('discreet.spec');
    expect(everythingOf(told)).not.toContain('geheim');
  });

  test.each([
    ['an address in the message', new Error('connect redis://app:geheim@10.0.0.1:6379/0 failed')],
    [
      'a password with an @ and a slash in an address',
      new Error('connect redis://app:ge@he/geheim@h:1 failed'),
    ],
    ['an address in the stack', Object.assign(new Error('x'), { stack: 'Error: redis://:geheim@h' })],
    ['a property that is called password', Object.assign(new Error('x'), { password: 'geheim' })],
    ['a client', Object.assign(new Error('x'), { client: { options: { key: 'geheim' } } })],
    ['a list of anything', Object.assign(new Error('x'), { parameters: ['geheim'] })],
    [
      'a function that knows',
      Object.assign(new Error('x'), { retry: Object.assign(() => 1, { with: 'geheim' }) }),
    ],
    ['under a symbol', Object.assign(new Error('x'), { [Symbol('config')]: { key: 'geheim' } })],
    ['in a cause', new Error('x', { cause: refused() })],
    ['in the cause of an error of Guard', new GuardError('unavailable', 'x', { cause: refused() })],
    ['in one of many', new AggregateError([new Error('a'), refused()])],
    ['in a cause that is no error', new Error('x', { cause: { key: 'geheim' } })],
    ['in a thing that is no error', { key: 'geheim' }],
    ['in a text', 'redis://app:geheim@10.0.0.1:6379'],
  ])('%s', (_name, error) => {
    expect(inspect(error, { depth: 10, showHidden: true })).toContain('geheim');
    expect(everythingOf(discreet(error))).not.toContain('geheim');
  });

  test('where it hides behind an accessor', () => {
    const error = Object.defineProperty(new Error('x'), 'options', { get: () => ({ key: 'geheim' }) });
    expect(discreet(error)).not.toHaveProperty('options');
  });

  test('an error of Guard stays one', () => {
    const told = discreet(new GuardError('unavailable', 'x', { cause: refused(), inDoubt: true, key: 'k' }));
    expect(GuardError.is(told, 'unavailable')).toBe(true);
    expect(told).toMatchObject({ inDoubt: true, key: 'k' });
    expect(told).toBeInstanceOf(GuardError);
  });

  test('a ring of causes comes to an end', () => {
    const one = new Error('one') as Error & { cause: unknown };
    one.cause = Object.assign(new Error('other', { cause: one }), { password: 'geheim' });
    expect(everythingOf(discreet(one))).not.toContain('geheim');
  });
});
