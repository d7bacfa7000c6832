/** Waiting for what will happen, and looking at what a promise was rejected with. */
import { GuardError } from '@guard/core';
import { failureOf, reasons, until } from '../../src/index.js';

describe('until', () => {
  it('looks until the answer is yes, and no longer', async () => {
    let looks = 0;
    await until('three looks', () => (looks += 1) === 3);
    expect(looks).toBe(3);
  });

  it('says what it waited for where that does not come', async () => {
    await expect(until('snow in July', () => false, 20)).rejects.toThrow('snow in July: not within 20 ms');
  });

  it('passes on what the look throws', async () => {
    await expect(until('nothing', () => Promise.reject(new Error('blind')))).rejects.toThrow('blind');
  });
});

describe('failureOf', () => {
  it('is the GuardError, and throws anything else: a value, or an error that is none', async () => {
    const error = new GuardError('closed', 'the guard is closed');
    expect(await failureOf(Promise.reject(error))).toBe(error);
    await expect(failureOf(Promise.resolve(7))).rejects.toThrow('fulfilled with 7');
    await expect(failureOf(Promise.reject(new TypeError('odd')))).rejects.toThrow(TypeError);
  });
});

it('reasons are the messages of an error and of all that it rests on, and show what is no error', () => {
  const error = new Error('outer', { cause: new Error('inner', { cause: 'no error' }) });
  expect(reasons(error)).toBe("outer < inner < 'no error'");
  expect(reasons(undefined)).toBe('undefined');
});
