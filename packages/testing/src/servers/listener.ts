/**
 * Whose socket listens on a port. A server that answers there may be somebody else's, who was faster: then the own one
 * is about to end with an error, and the other must not pass for it.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { processTree } from './reap.js';

/** `unknown`: the system does not tell, or not to this user. */
export type Listener = 'ours' | 'foreign' | 'unknown';

/** How the kernel writes down a socket that listens. */
const LISTENS = '0A';

/** Whether `pid`, or a process that it started, listens on `port`. */
export function listenerOn(port: number, pid: number): Listener {
  const listening = listeningInodes(port);
  if (listening.length === 0) return 'unknown';
  let blind = false;
  for (const each of processTree(pid)) {
    const sockets = socketsOf(each);
    if (sockets === undefined) blind = true;
    else if (sockets.some((inode) => listening.includes(inode))) return 'ours';
  }
  return blind ? 'unknown' : 'foreign';
}

/** The sockets that listen on a port, by the number that Linux gives each. Empty elsewhere. */
function listeningInodes(port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) =>
    linesOf(table).flatMap((line) => {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      return local?.endsWith(suffix) && state === LISTENS && inode !== undefined ? [inode] : [];
    }),
  );
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** `undefined`: this user may not look. Empty where the process has ended. */
function socketsOf(pid: number): string[] | undefined {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((name) => socketBehind(`${folder}/${name}`));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : undefined;
  }
}

function socketBehind(link: string): string[] {
  try {
    const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(link))?.[1];
    return inode === undefined ? [] : [inode];
  } catch (error) {
    // Closed in the meantime, which is no reason not to see the others.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
