import { occurrencesOf, parseOptions } from '../src/options.js';

describe('the command line', () => {
  it('asks for nothing', () => {
    expect(parseOptions([])).toEqual({
      ...{ seed: undefined, occurrences: 20, guarded: true, json: false, outageS: 0 },
      backends: { locks: 'sqlite', runs: 'sqlite' },
    });
  });

  it('says what is wanted', () => {
    const args = ['--json', '--unguarded', '--seed', '7', '--occurrences=6', '--backend', 'sqlite'];
    expect(parseOptions(args)).toEqual({
      ...{ seed: 7, occurrences: 6, guarded: false, json: true, outageS: 0 },
      backends: { locks: 'sqlite', runs: 'sqlite' },
    });
  });

  it('makes room for the outages of as many servers as there are', () => {
    const asked = (...args: string[]): number =>
      occurrencesOf(parseOptions(args) as Parameters<typeof occurrencesOf>[0]);
    expect(asked()).toBe(20);
    expect(asked('--locks', 'redis', '--runs', 'postgres', '--outage', '10s')).toBe(44);
    expect(asked('--backend', 'mariadb', '--outage', '10', '--occurrences', '6')).toBe(18);
    expect(asked('--locks', 'etcd', '--outage', '1')).toBe(23);
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
    [['--backend', 'etcd', '--outage', '16'], "--outage takes a whole number from 1 to 15, got '16'"],
    [
      ['--outage', '10s'],
      '--outage needs a guard whose locks or runs live on a server, as with --backend postgres',
    ],
    [
      ['--backend', 'redis', '--unguarded', '--outage', '10s'],
      '--outage needs a guard whose locks or runs live on a server, as with --backend postgres',
    ],
    [['--colour'], "Unknown option '--colour'"],
    [['now'], "Unexpected argument 'now'. This command does not take positional arguments"],
  ])('refuses %j', (args, problem) => expect(parseOptions(args)).toEqual({ problem }));

  it('explains itself', () => {
    expect(parseOptions(['--help'])).toEqual({ usage: expect.stringContaining('--unguarded') as string });
  });
});
