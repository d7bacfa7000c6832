/**
 * Ends what a test process left behind. Each server that is started leaves a record: its process id, when that
 * process began, its folder. A watcher process reaps the records as soon as the test process is gone, however it
 * went: an exit hook would not do, because a killed process runs none, and a test runner may hand its tests a copy of
 * `process` on which none ever fires. Records whose watcher died too are reaped before the next server starts.
 *
 * The functions at the end also run as the watcher's whole program, from their own text. So they use nothing but
 * each other and Node.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where everything is that outlives one test process. */
export const TEMPORARY = join(tmpdir(), `guard-servers-${process.getuid?.() ?? 'all'}`);
const RECORDS = join(TEMPORARY, 'records');
const OWN = join(RECORDS, `${process.pid}-${beganAt(process.pid)}`);

let watched = false;

/** Notes a process that is to end with this one, and the folder that goes with it. */
export function record(pid: number, folder: string): void {
  mkdirSync(OWN, { recursive: true });
  writeFileSync(join(OWN, String(pid)), JSON.stringify({ pid, began: beganAt(pid), folder }));
  if (!watched) watch();
}

/** Takes a process off the records. */
export function forget(pid: number): void {
  rmSync(join(OWN, String(pid)), { force: true });
}

/** Ends what test processes left behind that are gone, with their watchers. */
export function reapOrphans(): void {
  mkdirSync(RECORDS, { recursive: true });
  for (const name of readdirSync(RECORDS)) {
    const [pid, began] = name.split('-');
    if (beganAt(Number(pid)) !== began) reap(join(RECORDS, name));
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
  const parts = [beganAt, processTree, signalOne, reap, watchOwner];
  const program = `${parts.map(String).join('\n')}\nwatchOwner(${JSON.stringify(OWN)});`;
  const watcher = spawn(process.execPath, ['-e', program], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Nothing is ever written: the pipe breaks when this process ends, and that is the message.
  watcher.stdin.on('error', () => undefined);
  (watcher.stdin as unknown as { unref(): void }).unref();
  watcher.unref();
}

function watchOwner(folder: string): void {
  process.stdin.on('end', () => reap(folder)).resume();
}

function reap(folder: string): void {
  const fs = process.getBuiltinModule('node:fs');
  const names = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
  for (const name of names) {
    const left = JSON.parse(fs.readFileSync(`${folder}/${name}`, 'utf8')) as {
      pid: number;
      began: string;
      folder: string;
    };
    const lives = beganAt(left.pid) === left.began;
    for (const pid of lives ? processTree(left.pid) : []) signalOne(pid, 'SIGKILL');
    fs.rmSync(left.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    fs.rmSync(`${folder}/${name}`, { force: true });
  }
  fs.rmSync(folder, { recursive: true, force: true });
}

/** The process itself and all its descendants, each after its parent. */
function processTree(pid: number): number[] {
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
