/** The example as it is: needs a build, and twelve real seconds. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const build = join(__dirname, '..', '..', '..', 'scripts', 'build.mjs');
const program = join(__dirname, '..', 'dist', 'main.js');

beforeAll(async () => {
  expect(await ended(build)).toMatchObject({ code: 0 });
}, 300_000);

it('[S7] [S8] runs each second once in three processes, one of which is killed', async () => {
  const { code, output } = await ended(program);
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain('Each second ran once.');
  expect([...output.matchAll(/^node-\d {2}ran \S+Z \(/gm)].length).toBeGreaterThanOrEqual(8);
}, 90_000);

async function ended(script: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}
