/** An example as its reader has it: built, and in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');
const BUILD_MS = 300_000;

/** How a program ended, and everything that it wrote. */
export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Builds before the first test of a file. Types are checked elsewhere: here that would take a core for a minute. */
export function built(): void {
  beforeAll(async () => {
    const child = spawn(process.execPath, [join(root, 'scripts', 'build.mjs'), '--unchecked'], {
      stdio: PIPED,
    });
    expect(await ended(child)).toMatchObject({ code: 0 });
  }, BUILD_MS);
}

/** Starts an example. Servers from outside are used by it only where `env` names them. */
export function start(
  example: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): ChildProcess {
  const { REDIS_URL: _redis, POSTGRES_URL: _postgres, ETCD_URLS: _etcd, ...others } = process.env;
  const program = join(root, 'examples', example, 'dist', 'main.js');
  return spawn(process.execPath, [program, ...args], { env: { ...others, ...env }, stdio: PIPED });
}

/** Waits for the end of a program that was just started. */
export async function ended(child: ChildProcess): Promise<Ended> {
  let output = '';
  child.stdout?.on('data', (chunk) => (output += String(chunk)));
  child.stderr?.on('data', (chunk) => (output += String(chunk)));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

const PIPED: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
