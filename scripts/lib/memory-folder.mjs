// Temporary folders in memory, where root can have them: unpacking an image onto a disk, and above all deleting it
// again, takes longer than using it.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './run.mjs';

/** A new folder with a folder `data` in memory (on the disk where that cannot be), and how to remove both. */
export async function memoryFolder(prefix) {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  const data = join(folder, 'data');
  mkdirSync(data);
  await run('mount', ['-t', 'tmpfs', '-o', 'size=4g', prefix, data], { capture: true });
  const remove = async () => {
    for (const mount of mountsUnder(folder)) await run('umount', [mount], { capture: true });
    rmSync(folder, { recursive: true, force: true });
  };
  return { folder, data, remove };
}

/** Mounts below a folder, the deepest first. */
function mountsUnder(folder) {
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  return mounts.filter((mount) => mount.startsWith(`${folder}/`)).reverse();
}
