/**
 * The clock that leases on one machine are counted by. Wall clocks are set, and a process's own monotonic clock
 * starts with the process; the machine's monotonic clock does neither, and every process of the machine reads the
 * same number. It starts again when the machine does, so a moment on it means something only together with a boot.
 */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** Moments that all processes of one machine understand. */
export interface MachineTime {
  /** Differs between two starts of a machine, and between machines. */
  readonly boot: string;
  /** Milliseconds since some moment of this boot. */
  nowMs(): number;
}

/**
 * The machine's time.
 *
 * Node reads `CLOCK_MONOTONIC` on Linux, the continuous time of macOS and the performance counter of Windows: all
 * three are one for the machine. Only Linux names the boot. Elsewhere the host's name stands for it, and a reboot is
 * seen by rows whose moment lies in the future; a row that it does not show lasts at most its own ttl longer.
 */
export function systemMachineTime(): MachineTime {
  return { boot: bootId(), nowMs: monotonicMs };
}

function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

function bootId(): string {
  const boot = readLine('/proc/sys/kernel/random/boot_id');
  if (boot === undefined) return `${process.platform}:${hostname()}`;
  // A container can have a monotonic clock of its own: then its moments are those of another boot.
  const offset = /^monotonic\s+(-?\d+)\s+(-?\d+)/.exec(readLine('/proc/self/timens_offsets') ?? '');
  const shifted = offset !== null && (Number(offset[1]) !== 0 || Number(offset[2]) !== 0);
  return shifted ? `${boot}+${offset[1]}.${offset[2]}` : boot;
}

function readLine(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}
