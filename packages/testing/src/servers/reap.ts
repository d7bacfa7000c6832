/**
 * Ends what a test process left behind. Each folder that is made for a server leaves a record: its path, and the
 * process that works in it, with the time at which that one began. A watcher process reaps the records as soon as the
 * test process is gone, however it went: an exit hook would not do, because a killed process runs none, and a test
 * runner may hand its tests a copy of `process` on which none ever fires. Records whose watcher died too are reaped
 * before the next server starts.
 *
 * A record says what to delete and whom to kill. So nobody else may write where records stand, and no record reaches
 * beyond the folders that are made here.
 *
 * The functions at the end also run as the watcher's whole program, from their own text. So they use nothing but
 * each other and Node.
 */
import { spawn } from 'node:child_process';
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { GuardError } from '@guard/core';
import { privateFolder } from '../process/private-folder.js';

/** A file system in memory, on Linux. */
export const MEMORY = '/dev/shm';

const TEMPORARY = join(tmpdir(), `guard-servers-${process.getuid?.() ?? 'all'}`);
const TEMPLATES = join(TEMPORARY, 'templates');
const RECORDS = join(TEMPORARY, 'records');
const OWN = join(RECORDS, `${process.pid}-${beganAt(process.pid)}`);

/** Where folders are made, and nowhere else is one removed. */
const PLACES = [tmpdir(), MEMORY, TEMPLATES];

let watched = false;

/** The folder of data folders that are copied. Those who run a server may come through, and see no name. */
export function templatesFolder(): string {
  own(TEMPORARY, 0o711);
  return own(TEMPLATES, 0o711);
}

/** Notes a folder that goes with this process, and the process that works in it, if one does now. */
export function record(folder: string, pid?: number): void {
  recordsFolder();
  own(OWN);
  const file = join(OWN, basename(folder));
  const worker = pid === undefined ? {} : { pid, began: beganAt(pid) };
  // The watcher may read at any time: it sees the record before, or this one.
  writeFileSync(`${file}.new`, JSON.stringify({ folder, ...worker }));
  renameSync(`${file}.new`, file);
  if (!watched) watch();
}

/** Takes a folder off the records. */
export function forget(folder: string): void {
  rmSync(join(OWN, basename(folder)), { force: true });
}

/** Ends what test processes left behind that are gone, with their watchers. */
export function reapOrphans(): void {
  const records = recordsFolder();
  for (const name of readdirSync(records)) {
    const [, pid, began] = /^(\d+)-(\w*)$/.exec(name) ?? [];
    if (pid !== undefined && beganAt(Number(pid)) !== began) reap(join(records, name), PLACES);
  }
}

function recordsFolder(): string {
  own(TEMPORARY, 0o711);
  return own(RECORDS);
}

/** Makes or takes a folder that nobody else can write to. */
function own(path: string, mode?: number): string {
  try {
    return privateFolder(path, mode);
  } catch (cause) {
    throw new GuardError('unavailable', `no server is started: ${(cause as Error).message}`, { cause });
  }
}

/** Sends a signal to a process and to all that it started, parents first: a stopped parent starts nobody new. */
export function signalTree(pid: number, signal: NodeJS.Signals): void {
  const known = new Set<number>();
  // Who was started between the look and the signal is found by the next look.
  for (let found = [pid]; found.length > 0; found = processTree(pid).filter((each) => !known.has(each))) {
    for (const each of found) {
      known.add(each);
      signalOne(each, signal);
    }
  }
}

function watch(): void {
  watched = true;
  const parts = [beganAt, processTree, signalOne, readRecord, reap, watchOwner];
  const program = `${parts.map(String).join('\n')}\nwatchOwner(${JSON.stringify(OWN)}, ${JSON.stringify(PLACES)});`;
  const watcher = spawn(process.execPath, ['-e', program], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Nothing is ever written: the pipe breaks when this process ends, and that is the message.
  watcher.stdin.on('error', () => undefined);
  (watcher.stdin as unknown as { unref(): void }).unref();
  watcher.unref();
}

function watchOwner(folder: string, places: readonly string[]): void {
  process.stdin.on('end', () => reap(folder, places)).resume();
}

function reap(folder: string, places: readonly string[]): void {
  const fs = process.getBuiltinModule('node:fs');
  const names = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
  for (const name of names) {
    const left = readRecord(`${folder}/${name}`, places);
    if (left?.pid !== undefined) {
      for (const pid of processTree(left.pid)) signalOne(pid, 'SIGKILL');
    }
    if (left !== undefined) {
      fs.rmSync(left.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    }
    fs.rmSync(`${folder}/${name}`, { force: true });
  }
  fs.rmSync(folder, { recursive: true, force: true });
}

/** What a record names: a folder that was made here, and a process if it still is the one that was meant. */
function readRecord(file: string, places: readonly string[]): { folder: string; pid?: number } | undefined {
  const fs = process.getBuiltinModule('node:fs');
  const path = process.getBuiltinModule('node:path');
  try {
    const { folder, pid, began } = JSON.parse(fs.readFileSync(file, 'utf8')) as {
      folder: string;
      pid?: number;
      began?: string;
    };
    const isMade = /^(guard|making)-[\w-]*$/.test(path.basename(folder));
    if (!isMade || !places.some((place) => path.join(place, path.basename(folder)) === folder))
      return undefined;
    if (pid === undefined || !Number.isInteger(pid) || pid < 2) return { folder };
    return began !== '' && beganAt(pid) === began ? { folder, pid } : { folder };
  } catch {
    // Half of a record, or taken away in the meantime by whoever reaps too.
    return undefined;
  }
}

/** The process itself and all its descendants, each after its parent. */
export function processTree(pid: number): number[] {
  const fs = process.getBuiltinModule('node:fs');
  const children = new Map<number, number[]>();
  const add = (child: number, parent: number): void => {
    children.set(parent, [...(children.get(parent) ?? []), child]);
  };
  if (fs.existsSync('/proc/self/stat')) {
    for (const name of fs.readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
      try {
        const stat = fs.readFileSync(`/proc/${name}/stat`, 'utf8');
        add(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
      } catch {
        // It ended in the meantime.
      }
    }
  } else {
    const { execFileSync } = process.getBuiltinModule('node:child_process');
    for (const line of execFileSync('ps', ['-A', '-o', 'pid=,ppid=']).toString().trim().split('\n')) {
      const [child, parent] = line.trim().split(/\s+/).map(Number);
      if (child !== undefined && parent !== undefined) add(child, parent);
    }
  }
  const tree = [pid];
  for (const each of tree) tree.push(...(children.get(each) ?? []));
  return tree;
}

function signalOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is gone.
  }
}

/** When a process began, as the system counts it: tells it from a later one with the same id. Empty: no such one. */
function beganAt(pid: number): string {
  const fs = process.getBuiltinModule('node:fs');
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    if (fs.existsSync('/proc/self/stat')) return '';
  }
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)])
    .stdout.toString()
    .replace(/\W+/g, '_');
}
