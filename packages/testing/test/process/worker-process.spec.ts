import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GuardError } from '@guard/core';
import { SharedHoldLog, startWorker, type WorkerProcess } from '@guard/testing';
import type { Fault } from './workers/bad.js';

// Processes start and end in their own time.
jest.setTimeout(60_000);

const started: WorkerProcess[] = [];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'guard-workers-test-'));
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.close().catch(() => undefined)));
  rmSync(folder, { recursive: true });
});

function worker<O>(name: string, options: Parameters<typeof startWorker>[1] = {}): WorkerProcess<O> {
  const one = startWorker<O>(join(__dirname, 'workers', `${name}.ts`), options);
  started.push(one);
  return one;
}

describe('A worker process', () => {
  it('runs TypeScript without a build, and talks in values that JSON does not know', async () => {
    const at = new Date(5);
    const talk = worker<bigint>('talk', { input: { n: 21n, at } });
    talk.tell(new Map([['a', 1n]]));
    expect(await talk.next()).toEqual({ heard: new Map([['a', 1n]]), at });
    expect(await talk.finish()).toBe(42n);
    expect(await talk.ended).toEqual({ code: 0, signal: null });
  });

  it('can be stopped and continued', async () => {
    const clocks = worker('clocks');
    clocks.tell('?');
    await clocks.next();
    await clocks.pause();
    clocks.tell('?');
    const silent = new Promise((resolve) => setTimeout(resolve, 200, 'silent'));
    const answer = clocks.next();
    expect(await Promise.race([answer, silent])).toBe('silent');
    clocks.resume();
    expect(await answer).toBeDefined();
    clocks.tell('end');
    await clocks.finish();
  });

  it('can be killed, also while it is stopped, and that is no problem of its own', async () => {
    const clocks = worker('clocks');
    clocks.tell('?');
    await clocks.next();
    await clocks.pause();
    await clocks.kill();
    expect(await clocks.ended).toEqual({ code: null, signal: 'SIGKILL' });
    expect(clocks.problems()).toEqual([]);
    await expect(clocks.next()).rejects.toThrow('ended without a message');
    await expect(clocks.finish()).rejects.toThrow('did not finish');
    await clocks.close();
  });
});

describe('A test whose worker', () => {
  it('leaves a process behind does not wait for that one', async () => {
    const parent = worker('parent');
    const left = await parent.next<number>();
    await parent.close();
    // It is still there, and this throws otherwise.
    expect(process.kill(left, 'SIGKILL')).toBe(true);
  });

  it('speaks to a parent process of its own hears nothing of it', async () => {
    const stranger = worker<string>('stranger');
    expect(await stranger.finish()).toBe('returned');
    await expect(stranger.next()).rejects.toThrow('ended without a message');
  });

  it('is not started by the system gets that from finish, next and close', async () => {
    const { execPath } = process;
    process.execPath = join(folder, 'no-node');
    const absent = worker('talk');
    process.execPath = execPath;
    const tooLarge = worker('talk', { env: { HUGE: 'x'.repeat(10_000_000) } });
    for (const one of [absent, tooLarge]) {
      expect(await one.ended).toEqual({ code: null, signal: null });
      await expect(one.next()).rejects.toThrow('ended without a message');
      await expect(one.finish()).rejects.toThrow(/it could not be started: Error: spawn .*(ENOENT|E2BIG)/);
      await expect(one.close()).rejects.toThrow('it could not be started');
      expect(() => one.pid).toThrow('no process could be started');
    }
  });

  it.each<[string, object, RegExp]>([
    [
      'an input that cannot travel',
      { input: () => 1 },
      /options\.input must be something that can be cloned/,
    ],
    ['a shift with a unit', { wallShiftMs: '1h' }, /options\.wallShiftMs must be a finite number/],
    ['a user below zero', { uid: -1 }, /options\.uid must be a whole number/],
    ['an option that does not exist', { walShiftMs: 1 }, /no option 'walShiftMs'/],
    ['an environment of numbers', { env: { A: 1 } }, /options\.env must hold texts/],
    ['an environment of one text', { env: 'abc' }, /options\.env must be an object/],
    ['a log that is none', { log: {} }, /options\.log must be a SharedHoldLog/],
  ])('is given %s starts nothing', (_what, options, message) => {
    expect(() => worker('talk', options)).toThrow(message);
    expect(() => worker('talk', options)).toThrow(GuardError);
  });

  it('has no file starts nothing', () => {
    expect(() => worker('nowhere')).toThrow(/file must be a file that exists/);
    expect(() => startWorker(7 as never)).toThrow(/file must be a path or a file URL/);
    expect(() => startWorker(__dirname)).toThrow(/file must be a file that exists/);
    expect(() => startWorker(__filename, null as never)).toThrow(/options must be an object/);
    const talk = worker('talk', { input: { n: 1n } });
    expect(() => talk.tell(() => 1)).toThrow(/message must be something that can be cloned/);
    expect(() => talk.shiftWallClock(NaN)).toThrow(/wallShiftMs must be a finite number/);
  });
});

describe('The wall clock of a worker', () => {
  interface Clocks {
    readonly wallMs: number;
    readonly newMs: number;
    readonly text: string;
    readonly byConstructor: number;
    readonly guardMs: number;
    readonly fixed: string;
    readonly isDate: boolean;
    readonly machineMs: number;
  }
  const HOUR = 3_600_000;
  const near = (ms: number): number => Math.round(ms / HOUR) + 0;

  async function read(clocks: WorkerProcess): Promise<Clocks> {
    clocks.tell('?');
    return clocks.next<Clocks>();
  }

  it('is shifted wherever it can be read, while the monotonic one and fixed dates are not', async () => {
    const clocks = worker('clocks', { wallShiftMs: 5 * HOUR });
    const beforeMs = Number(process.hrtime.bigint()) / 1e6;
    const seen = await read(clocks);
    const realMs = Date.now();
    for (const ms of [seen.wallMs, seen.newMs, Date.parse(seen.text), seen.byConstructor, seen.guardMs]) {
      expect(near(ms - realMs)).toBe(5);
    }
    expect(seen.fixed).toBe('1970-01-01T00:00:01.000Z');
    expect(seen.isDate).toBe(true);
    expect(seen.machineMs).toBeGreaterThan(beforeMs);
    expect(seen.machineMs).toBeLessThan(Number(process.hrtime.bigint()) / 1e6);
  });

  it('can be moved while it runs, back as well', async () => {
    const clocks = worker('clocks');
    expect(near((await read(clocks)).wallMs - Date.now())).toBe(0);
    clocks.shiftWallClock(-2 * HOUR);
    expect(near((await read(clocks)).wallMs - Date.now())).toBe(-2);
  });
});

describe('A strict process', () => {
  it.each<[Fault, RegExp]>([
    ['rejection', /ended by itself with code 1[^]*nobody waits for me/],
    ['exception', /ended by itself with code 1[^]*nobody catches me/],
    ['throw', /ended by itself with code 1[^]*thrown by the worker/],
    ['exit', /ended by itself with code 3/],
    ['hidden rejection', /unhandled rejection: Error: nobody waits for me/],
    ['hidden exception', /uncaught exception: Error: nobody catches me/],
    ['late', /unhandled rejection: Error: too late for everybody/],
    ['listeners', /MaxListenersExceededWarning/],
    ['timer', /TimeoutOverflowWarning/],
  ])('fails its test on: %s', async (fault, message) => {
    const bad = worker('bad', { input: fault });
    await expect(bad.finish()).rejects.toThrow(message);
    await expect(bad.close()).rejects.toThrow(message);
  });

  it('[L5] fails its test when something keeps it alive after its work is done', async () => {
    const bad = worker('bad', { input: 'lingers', exitWithinMs: 300 });
    await expect(bad.finish()).rejects.toThrow('it still lives 300 ms after its function has returned');
  });
});

describe('A hold log of several processes', () => {
  it('[S1] sees two processes that believe in one lock at the same time', async () => {
    const log = new SharedHoldLog(join(folder, 'log'));
    const one = worker('holding', { input: { file: log.file, token: 1n }, log });
    await one.next();
    const two = worker('holding', { input: { file: log.file, token: 2n }, log });
    await two.next();
    for (const each of [one, two]) each.tell('exit');
    for (const each of [one, two]) await each.finish();
    expect(log.problems()[0]).toMatch(/^k: process \d+ says "enter" at .* ms beside process \d+$/);
  });

  it('[S1] ends the belief of a process that stands still, and begins it again when it looks', async () => {
    const log = new SharedHoldLog(join(folder, 'log'));
    const one = worker('holding', { input: { file: log.file, token: 1n }, log });
    await one.next();
    await one.pause();
    const two = worker('holding', { input: { file: log.file, token: 2n }, log });
    await two.next();
    two.tell('exit');
    await two.finish();
    expect(log.problems()).toEqual([]);
    const three = worker('holding', { input: { file: log.file, token: 3n }, log });
    await three.next();
    one.resume();
    one.tell('exit');
    await one.finish();
    expect(log.problems()[0]).toContain('says "held"');
  });

  it.each([
    ['it crashes', (dying: WorkerProcess) => dying.tell('crash')],
    ['it kills itself', (dying: WorkerProcess) => dying.tell('kill yourself')],
    ['it gets SIGTERM', (dying: WorkerProcess) => dying.signal('SIGTERM')],
    ['it gets SIGKILL', (dying: WorkerProcess) => dying.signal('SIGKILL')],
  ])('[S1] ends the belief of a process when %s', async (_how, die) => {
    const log = new SharedHoldLog(join(folder, 'log'));
    const dying = worker('dying', { input: log.file, log });
    await dying.next();
    die(dying);
    await dying.ended;
    log.enter('another', { key: 'k', token: 2n });
    expect(log.problems()).toEqual([]);
  });

  it('[S2] ends the belief of a killed process, and sees a token that does not grow', async () => {
    const log = new SharedHoldLog(join(folder, 'log'));
    const one = worker('holding', { input: { file: log.file, token: 5n }, log });
    await one.next();
    await one.kill();
    log.enter('the test', { key: 'k', token: 5n });
    expect(log.problems()).toEqual([expect.stringMatching(/^k: the test got token 5 at .* ms, after 5$/)]);
  });
});
