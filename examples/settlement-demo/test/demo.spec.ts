/** The demo itself, in processes of its own: needs a build, and real seconds. */
import type { ChildProcess } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { SeededRandom } from '@guard/testing';
import { ended } from '../../../test/support/example.js';
import { figuresIn, playing } from './support/playing.js';

const { seed } = new SeededRandom();

describe(`the demo (GUARD_SEED=${seed})`, () => {
  const { play, folder } = playing();

  it('settles every occurrence once, with a worker killed and one stopped', async () => {
    const { code, output } = await ended(play(['--json', '--seed', String(seed)]));
    expect({ code, output }).toMatchObject({ code: 0 });
    const figures = figuresIn(output);
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
    expect(readdirSync(folder())).toEqual([]);
  }, 120_000);

  it('fails without the guard, and says what was doubled', async () => {
    const args = ['--json', '--unguarded', '--occurrences', '6', '--seed', String(seed)];
    const { code, output } = await ended(play(args));
    expect({ code, output }).toMatchObject({ code: 1 });
    const figures = figuresIn(output);
    expect(figures).toMatchObject({ occurrences: 6, missed: 0, takeovers: 0, refusedWrites: 0, nodes: 3 });
    expect(figures['duplicates']).toBeGreaterThan(0);
    expect(figures['balanceActual']).toBeGreaterThan(figures['balanceExpected'] ?? NaN);
    expect(output).toMatch(/\d\d:\d\d:\d\d was doubled by worker-.*too much/);
    expect(output).toContain('FAILED, as it has to without a guard.');
  }, 60_000);

  it('leaves nothing behind when it is interrupted, not even a stopped worker', async () => {
    const before = readdirSync(folder());
    const demo = play(['--occurrences', '6']);
    const end = ended(demo);
    const pids = pidsIn(await saying(demo, /stopped \(SIGSTOP\)/));
    demo.kill('SIGTERM');
    expect(await end).toMatchObject({ code: 130 });
    expect(pids).toHaveLength(3);
    await expect(gone(pids)).resolves.toBe(true);
    expect(readdirSync(folder())).toEqual(before);
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
