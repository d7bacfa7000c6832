/** The example as it is: needs a build, and some ten real seconds. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const build = join(__dirname, '..', '..', '..', 'scripts', 'build.mjs');
const program = join(__dirname, '..', 'dist', 'main.js');

beforeAll(async () => {
  expect(await ended(build)).toMatchObject({ code: 0 });
}, 300_000);

it('[S7] [L4] three replicas charge each order once and settle each charge once, although one is killed', async () => {
  const { code, output } = await ended(program);
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain('order-1 was asked for 3 times: 1 charge');
  expect(output).toMatch(/replica-[23] {2}charges order-2 \(takeover\)/);
  expect(output).toMatch(/order-2 was charged by replica-[23]/);
  expect(output).toContain('The books are right.');
}, 120_000);

async function ended(script: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}
