/** Cases at the same time: how many, under which titles, and what a second chance is. */
import { sideBySide } from '@guard/testing';

type Play = () => unknown;

/** A test runner that collects what it is given. */
function collector() {
  const plays: { title: string; run: Play }[] = [];
  const runner = {
    describe: (_title: string, define: () => void) => define(),
    it: (title: string, run: Play) => void plays.push({ title, run }),
    skip: () => undefined,
  };
  return { runner, plays };
}

function define(runner: ReturnType<typeof sideBySide>, ...cases: (() => Promise<void>)[]): void {
  runner.describe('suite', () => {
    runner.describe('theme', () => cases.forEach((run, n) => runner.it(`case ${n}`, run)));
  });
}

describe('cases side by side', () => {
  it('are no more at a time than they may be, and carry their theme in their titles', async () => {
    const { runner, plays } = collector();
    let now = 0;
    let most = 0;
    const run = async (): Promise<void> => {
      most = Math.max(most, ++now);
      await Promise.resolve();
      now -= 1;
    };
    define(sideBySide(runner, { atATime: 2 }), run, run, run, run, run);
    await Promise.all(plays.map((play) => play.run()));
    expect(most).toBe(2);
    expect(plays.map(({ title }) => title)).toContain('theme: case 4');
  });

  it('are played once where no second chance was asked for', async () => {
    const { runner, plays } = collector();
    const run = jest.fn().mockRejectedValue(new Error('late'));
    define(sideBySide(runner, { atATime: 2 }), run);
    await expect(plays[0]!.run()).rejects.toThrow('late');
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('fail when they fail twice, and the first failure is told', async () => {
    const { runner, plays } = collector();
    const told: string[] = [];
    const late = jest.fn().mockRejectedValueOnce(new Error('late')).mockResolvedValue(undefined);
    const wrong = jest.fn().mockRejectedValue(new Error('wrong'));
    const onSecondChance = (title: string, error: unknown) => void told.push(`${title}: ${String(error)}`);
    define(sideBySide(runner, { atATime: 2, onSecondChance }), late, wrong);
    await plays[0]!.run();
    await expect(plays[1]!.run()).rejects.toThrow('wrong');
    expect(wrong).toHaveBeenCalledTimes(2);
    expect(told).toEqual(['theme: case 0: Error: late', 'theme: case 1: Error: wrong']);
  });
});
