import { parseOptions } from '../src/options.js';

describe('the command line', () => {
  it('asks for nothing', () => {
    expect(parseOptions([])).toEqual({
      ...{ seed: undefined, occurrences: 20, guarded: true, json: false },
      backends: { locks: 'sqlite', runs: 'sqlite' },
    });
  });

  it('says what is wanted', () => {
    const args = ['--json', '--unguarded', '--seed', '7', '--occurrences=6', '--backend', 'sqlite'];
    expect(parseOptions(args)).toEqual({
      ...{ seed: 7, occurrences: 6, guarded: false, json: true },
      backends: { locks: 'sqlite', runs: 'sqlite' },
    });
  });

  it.each([
    [
      ['--backend', 'oracle'],
      "there is no backend 'oracle' in this version; there is: sqlite, redis, etcd, postgres, mariadb",
    ],
    [
      ['--locks', 'zookeeper'],
      "there is no backend 'zookeeper' in this version; there is: sqlite, redis, etcd, postgres, mariadb",
    ],
    [
      ['--runs', 'mysql'],
      "there is no backend 'mysql' in this version; there is: sqlite, redis, etcd, postgres, mariadb",
    ],
    [
      ['--backend', 'constructor'],
      "there is no backend 'constructor' in this version; there is: sqlite, redis, etcd, postgres, mariadb",
    ],
    [['--seed', '1.5'], "--seed takes a whole number from 0 to 2147483647, got '1.5'"],
    [['--seed', ''], "--seed takes a whole number from 0 to 2147483647, got ''"],
    [['--occurrences', '5'], "--occurrences takes a whole number from 6 to 40, got '5'"],
    [['--colour'], "Unknown option '--colour'"],
    [['now'], "Unexpected argument 'now'. This command does not take positional arguments"],
  ])('refuses %j', (args, problem) => expect(parseOptions(args)).toEqual({ problem }));

  it('explains itself', () => {
    expect(parseOptions(['--help'])).toEqual({ usage: expect.stringContaining('--unguarded') as string });
  });
});
