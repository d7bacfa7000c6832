/** What `npm run test:smoke` makes of a machine without a container engine: played, since this one may have one. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const LIB = join(__dirname, '../../scripts/lib');

function decide(given: object): { code: number; says: string } {
  const url = pathToFileURL(join(LIB, 'no-engine.mjs')).href;
  const program = `
    import { withoutEngine } from ${JSON.stringify(url)};
    console.log(JSON.stringify(withoutEngine(${JSON.stringify(given)})));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  return JSON.parse(stdout) as { code: number; says: string };
}

describe('The smoke of containers on a machine without an engine', () => {
  it('has shown nothing where none can be had, and says why', () => {
    const ended = decide({ why: 'only root can start one', canHaveOne: false });
    expect(ended).toEqual({ code: 75, says: 'only root can start one' });
  });

  it('has failed as root on Debian, where one can be had', () => {
    const { code, says } = decide({
      why: 'dockerd does not start on this machine: no cgroup',
      canHaveOne: true,
    });
    expect(code).toBe(1);
    expect(says).toContain('no cgroup');
    expect(says).toContain('root on Debian');
  });
});
