/** The demo itself, in processes of its own: needs a build, and real seconds. */
import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeededRandom } from '@guard/testing';
import { built, ended, start } from '../../../test/support/example.js';

const { seed } = new SeededRandom();

describe(`the demo (GUARD_SEED=${seed})`, () => {
  let folder: string;
  const started: ChildProcess[] = [];

  built();
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'guard-demo-test-'));
    // Where this is root, Postgres is not: its data lies in here too.
    chmodSync(folder, 0o755);
  });
  afterAll(() => {
    for (const child of started) child.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  it('settles every occurrence once, with a worker killed and one stopped', async () => {
    const { code, output } = await ended(play(['--json', '--seed', String(seed)]));
    expect({ code, output }).toMatchObject({ code: 0 });
    const figures = JSON.parse(lastLine(output)) as Record<string, number>;
    expect(figures).toEqual({
      ...{ occurrences: 20, completed: 20, duplicates: 0, missed: 0, nodes: 3 },
      ...{ takeovers: expect.any(Number) as number, refusedWrites: expect.any(Number) as number },
      ...{ balanceExpected: expect.any(Number) as number, balanceActual: figures['balanceExpected'] },
      ms: expect.any(Number) as number,
    });
    expect(figures['takeovers']).toBeGreaterThanOrEqual(2);
    expect(figures['refusedWrites']).toBeGreaterThanOrEqual(2);
    expect(figures['ms']).toBeLessThan(60_000);
    expect(output).toContain(`Seed ${seed}.`);
    expect(output).toMatch(/ledger write refused: \[stale-token\]/);
    expect(output).toMatch(/finish refused: /);
    expect(output).not.toContain('\u001b');
    expect(readdirSync(folder)).toEqual([]);
  }, 120_000);

  it.each(['redis', 'etcd'])(
    'settles every occurrence once with locks and runs on %s',
    async (backend) => {
      const args = ['--json', '--backend', backend, '--occurrences', '8', '--seed', String(seed)];
      const { code, output } = await ended(play(args));
      expect({ code, output }).toMatchObject({ code: 0 });
      const figures = JSON.parse(lastLine(output)) as Record<string, number>;
      expect(figures).toMatchObject({ duplicates: 0, missed: 0, nodes: 3 });
      expect(figures['completed']).toBe(figures['occurrences']);
      expect(figures['occurrences']).toBeGreaterThanOrEqual(8);
      expect(figures['takeovers']).toBeGreaterThanOrEqual(2);
      expect(figures['refusedWrites']).toBeGreaterThanOrEqual(2);
      expect(figures['balanceActual']).toBe(figures['balanceExpected']);
    },
    120_000,
  );

  it('[S7] [S8] settles every occurrence once with locks on Redis and runs on Postgres, while each of the two is away in turn', async () => {
    const stores = ['--locks', 'redis', '--runs', 'postgres', '--outage', '4s', '--occurrences', '6'];
    const { code, output } = await ended(play(['--json', ...stores, '--seed', String(seed)]));
    expect({ code, output }).toMatchObject({ code: 0 });
    const figures = JSON.parse(lastLine(output)) as Record<string, number>;
    expect(figures).toMatchObject({ occurrences: 18, completed: 18, duplicates: 0, missed: 0 });
    expect(figures['balanceActual']).toBe(figures['balanceExpected']);
    for (const store of ['redis', 'postgres']) {
      expect(output).toMatch(new RegExp(`${store} +the server is killed \\(SIGKILL\\), and away for 4 s`));
      expect(output).toMatch(new RegExp(`${store} +the server is back`));
    }
    expect(output).toContain('a call, to be made again: [unavailable]');
  }, 120_000);

  it('fails without the guard, and says what was doubled', async () => {
    const args = ['--json', '--unguarded', '--occurrences', '6', '--seed', String(seed)];
    const { code, output } = await ended(play(args));
    expect({ code, output }).toMatchObject({ code: 1 });
    const figures = JSON.parse(lastLine(output)) as Record<string, number>;
    expect(figures).toMatchObject({ occurrences: 6, missed: 0, takeovers: 0, refusedWrites: 0, nodes: 3 });
    expect(figures['duplicates']).toBeGreaterThan(0);
    expect(figures['balanceActual']).toBeGreaterThan(figures['balanceExpected'] ?? NaN);
    expect(output).toMatch(/\d\d:\d\d:\d\d was doubled by worker-.*too much/);
    expect(output).toContain('FAILED, as it has to without a guard.');
  }, 60_000);

  it('leaves nothing behind when it is interrupted, not even a stopped worker', async () => {
    const before = readdirSync(folder);
    const demo = play(['--occurrences', '6']);
    const end = ended(demo);
    const pids = pidsIn(await saying(demo, /stopped \(SIGSTOP\)/));
    demo.kill('SIGTERM');
    expect(await end).toMatchObject({ code: 130 });
    expect(pids).toHaveLength(3);
    await expect(gone(pids)).resolves.toBe(true);
    expect(readdirSync(folder)).toEqual(before);
  }, 60_000);

  it('fails when a worker ends that nobody killed', async () => {
    const demo = play(['--occurrences', '6']);
    const end = ended(demo);
    const [first = NaN, ...rest] = pidsIn(await saying(demo, /ready: .*\n/));
    process.kill(first, 'SIGKILL');
    const { code, output } = await end;
    expect({ code, output }).toMatchObject({ code: 1 });
    expect(output).toContain('the demo failed: worker-1 ended by itself (SIGKILL)');
    await expect(gone(rest)).resolves.toBe(true);
  }, 60_000);

  function play(args: readonly string[]): ChildProcess {
    const child = start('settlement-demo', args, { ...process.env, TMPDIR: folder });
    started.push(child);
    return child;
  }
});

function pidsIn(said: string): readonly number[] {
  return [...said.matchAll(/\(pid (\d+)\)/g)].map(([, pid]) => Number(pid));
}

/** Everything that was said up to and including these words. */
async function saying(child: ChildProcess, words: RegExp): Promise<string> {
  let said = '';
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', (chunk) => {
      said += String(chunk);
      if (words.test(said)) resolve(said);
    });
    child.on('close', () => reject(new Error(`it never said ${String(words)}:\n${said}`)));
  });
}

/** Whether none of the processes is there any more; a killed one needs a moment. */
async function gone(pids: readonly number[]): Promise<boolean> {
  for (let look = 0; look < 100 && pids.some(isThere); look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return !pids.some(isThere);
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function lastLine(output: string): string {
  return output.trimEnd().split('\n').at(-1) ?? '';
}
