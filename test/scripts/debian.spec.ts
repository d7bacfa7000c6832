/** That an installation leaves no rule behind which keeps services from starting, however it ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const SCRIPT = pathToFileURL(join(__dirname, '../../scripts/lib/debian.mjs')).href;

let folder: string;
let policy: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'guard-debian-'));
  policy = join(folder, 'policy-rc.d');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Works under the policy until it gets a signal; answers what stood in the file, and how it ended. */
async function interrupt(signal: NodeJS.Signals): Promise<{ during: string; end: unknown[] }> {
  const program = `
    import { withoutServiceStarts } from ${JSON.stringify(SCRIPT)};
    await withoutServiceStarts(() => new Promise(() => {
      setInterval(() => {}, 1000);
      console.log('working');
    }), { policy: ${JSON.stringify(policy)} });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program]);
  await once(child.stdout, 'data');
  const during = readFileSync(policy, 'utf8');
  const ended = once(child, 'exit');
  child.kill(signal);
  return { during, end: await ended };
}

describe('The rule that no service starts during an installation', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'goes with %s, which ends the script all the same',
    async (signal) => {
      const { during, end } = await interrupt(signal);
      expect(during).toContain('exit 101');
      expect(end).toEqual([null, signal]);
      expect(existsSync(policy)).toBe(false);
    },
  );

  it('stays where it is the machine owner’s', async () => {
    writeFileSync(policy, 'exit 101 # mine\n');
    const { end } = await interrupt('SIGTERM');
    expect(end).toEqual([null, 'SIGTERM']);
    expect(readFileSync(policy, 'utf8')).toBe('exit 101 # mine\n');
  });
});
