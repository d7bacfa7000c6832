/** What `npm run test:nodes` is asked for is read before anything is installed or tested. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const PROGRAM = join(__dirname, '../../scripts/nodes.mjs');

it.each(['--prepar', '--prepare=yes', '-p', 'prepare'])(
  '%s is refused with its reason, the usage and exit code 2',
  (arg) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, arg], {
      encoding: 'utf8',
      // Nothing could be installed: no npm is found.
      env: { PATH: '' },
    });
    expect(status).toBe(2);
    expect(stderr).toContain(arg.split('=')[0]);
    expect(stderr).toContain('npm run test:nodes');
    expect(stdout).toBe('');
  },
);
