// Processor time of a server: of its processes and of their children, as the system counts it, in ticks of ten
// milliseconds. Elsewhere than on Linux there is nothing to read, and the rows say nothing.
import { readdirSync, readFileSync } from 'node:fs';

const MS_PER_TICK = 10;

/** Milliseconds of processor time so far; `undefined` where it cannot be read. */
export function cpuMsOf(pids) {
  const wanted = pids.filter((pid) => pid !== undefined);
  if (process.platform !== 'linux' || wanted.length === 0) return undefined;
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => statOf(pid) ?? []);
  const ticks = all
    .filter(({ pid, parent }) => wanted.includes(pid) || wanted.includes(parent))
    .reduce((sum, each) => sum + each.ticks, 0);
  return ticks * MS_PER_TICK;
}

function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program stands in brackets, and may hold anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // State is field 3 of proc(5): parent 4, user and system time 14 and 15, those of children that ended 16 and 17.
    const [parent, ...times] = [fields[1], fields[11], fields[12], fields[13], fields[14]].map(Number);
    return { pid: Number(pid), parent, ticks: times.reduce((sum, ticks) => sum + ticks, 0) };
  } catch {
    return undefined; // It ended meanwhile.
  }
}
