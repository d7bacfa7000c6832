/** Finds server programs: in PATH, and where Debian keeps those that it leaves out of PATH. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { GuardError } from '@guard/core';

const POSTGRES_FOLDER = '/usr/lib/postgresql';

/** The absolute path of a program, or `undefined`. */
export function findProgram(name: string): string | undefined {
  return programFolders()
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** The version that a program tells about itself, `unknown` where it tells none. */
export async function versionOf(path: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(path, ['--version']);
  return versionIn(`${stdout}${stderr}`);
}

/** The first thing in a text that looks like a version. */
export function versionIn(text: string): string {
  return /\d+\.\d+(\.\d+)*/.exec(text)?.[0] ?? 'unknown';
}

/** Ids of a user of this machine, where this process is root; else nothing, for it cannot become anybody else. */
export function idsOf(user: string | undefined): { uid: number; gid: number } | undefined {
  if (user === undefined || process.getuid?.() !== 0) return undefined;
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${user}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  if (uid === undefined || gid === undefined) {
    throw new GuardError('unavailable', `there is no user "${user}", and the server refuses to run as root`);
  }
  return { uid: Number(uid), gid: Number(gid) };
}

function programFolders(): string[] {
  const versions = existsSync(POSTGRES_FOLDER) ? readdirSync(POSTGRES_FOLDER) : [];
  const newestFirst = versions.sort((a, b) => Number(b) - Number(a));
  return [
    ...newestFirst.map((version) => join(POSTGRES_FOLDER, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter),
    '/usr/sbin',
  ];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    // A folder can be "executed" as well.
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
