import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GuardError } from '@guard/core';
import { SharedHoldLog } from '@guard/testing';

let folder: string;
let log: SharedHoldLog;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'guard-hold-log-'));
  log = new SharedHoldLog(join(folder, 'log'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const line = (atMs: number, pid: number, rest: object): void =>
  appendFileSync(log.file, `${JSON.stringify({ atMs, pid, key: 'k', holder: 'worker', ...rest })}\n`);

describe('A shared hold log', () => {
  it('[S1] sees two processes that use one name', () => {
    line(1, 10, { type: 'enter', token: '1' });
    line(2, 20, { type: 'enter', token: '2' });
    line(3, 10, { type: 'exit' });
    line(4, 20, { type: 'exit' });
    expect(log.problems()).toEqual([
      'k: worker (process 20) says "enter" at 2 ms beside worker (process 10)',
    ]);
  });

  it('keeps what one process exits apart from what another one of its name holds', () => {
    line(1, 10, { type: 'enter', token: '1' });
    line(2, 10, { type: 'exit' });
    line(3, 20, { type: 'enter', token: '2' });
    line(4, 10, { type: 'stopped' });
    line(5, 20, { type: 'held' });
    expect(log.problems()).toEqual([]);
  });

  it('leaves out what a killed process left of its last line', () => {
    line(1, 10, { type: 'enter', token: '1' });
    appendFileSync(log.file, '{"atMs":2,"ty');
    expect(log.events()).toHaveLength(1);
  });

  it.each(['{"atMs":2,"ty{"atMs":3}', 'null', '{}', 'hello'])(
    'says which line it cannot read: %s',
    (text) => {
      line(1, 10, { type: 'enter', token: '1' });
      appendFileSync(log.file, `${text}\n`);
      const read = (): unknown => log.problems();
      expect(read).toThrow(GuardError);
      expect(read).toThrow(`line 2 of the hold log ${log.file} is torn, or no line of a hold log: ${text}`);
    },
  );

  it.each([
    { type: 'enter', token: 'x' },
    { type: 'enter', token: 7 },
    { type: 'enter' },
    { type: 'helt' },
    { type: 'held', key: 7 },
    { type: 'held', holder: null },
    { pid: '10', type: 'held' },
  ])('says which line was never written by a hold log: %j', (rest) => {
    line(1, 10, { type: 'enter', token: '1' });
    line(2, 10, rest);
    expect(() => log.problems()).toThrow(GuardError);
    expect(() => log.problems()).toThrow(`line 2 of the hold log ${log.file} is torn, or no line`);
  });

  it('finds a belief of one process after its release [S1]', () => {
    line(1, 10, { type: 'enter', token: '1' });
    line(2, 10, { type: 'exit' });
    line(3, 10, { type: 'held' });
    expect(log.problems()).toEqual(['k: worker says "held" at 3 ms after it said "exit"']);
  });

  it('does not pass for an answer what nobody wrote', () => {
    expect(log.events()).toEqual([]);
    expect(() => log.problems()).toThrow(`nobody wrote to the hold log ${log.file}`);
    expect(() => new SharedHoldLog(join(folder, 'typo', 'log'))).toThrow(
      /must stand in a folder that exists/,
    );
  });

  it('refuses a grant without a token', () => {
    expect(() => log.enter('A', { key: 'k' } as never)).toThrow(/lock\.token must be a bigint/);
  });

  it('refuses lines that nobody could have meant, and writes none of them', () => {
    expect(() => log.add('helt' as never, 'A', 'k')).toThrow(/type must be 'held' or/);
    expect(() => log.add('held', 'A', undefined as never)).toThrow(/key must be a text/);
    expect(() => log.stopped('12' as never)).toThrow(/pid must be a whole number/);
    expect(() => new SharedHoldLog(undefined as never)).toThrow(/file must be a path/);
    expect(log.events()).toEqual([]);
  });
});
