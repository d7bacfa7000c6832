/** What every server must do, shown with a client that an application would use. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerControl, TestServer } from '@guard/testing/servers';

// Real servers start, elect and recover in their own time.
jest.setTimeout(60_000);

/** How long a paused server is given to answer all the same. */
const SILENCE_MS = 300;

export interface ServerCase<S extends ServerControl> {
  readonly start: () => Promise<S>;
  /** The single servers in it. */
  readonly nodes: (server: S) => readonly TestServer[];
  /** Stores a text through a client that is made for this one call. */
  readonly write: (server: S, text: string) => Promise<void>;
  /** The stored text, or `null`. */
  readonly read: (server: S) => Promise<string | null>;
  /** `false`: it stores nothing itself, what stands behind it does. */
  readonly hasData?: boolean;
}

export function describeServer<S extends ServerControl>(name: string, server: ServerCase<S>): void {
  const { start, nodes, write, read, hasData = true } = server;

  describe(name, () => {
    let running: S;
    beforeAll(async () => {
      running = await start();
    });
    afterAll(() => running.stop());

    it('tells its version and where it came from, and listens on the loopback address only', () => {
      for (const { version, source, host } of nodes(running)) {
        expect(version).toMatch(/^\d+\.\d+/);
        expect(source).toBe('program');
        expect(host).toBe('127.0.0.1');
      }
    });

    it('answers a client', async () => {
      await write(running, 'first');
      expect(await read(running)).toBe('first');
    });

    it('is silent while it is paused, and answers again when it goes on', async () => {
      await running.pause();
      const late = read(running);
      late.catch(() => undefined);
      expect(await Promise.race([late, sleep(SILENCE_MS, 'silent')])).toBe('silent');
      await running.resume();
      expect(await late).toBe('first');
    });

    it('keeps what it acknowledged when it is restarted with its data', async () => {
      await write(running, 'kept');
      await running.restart({ keepData: true });
      expect(await read(running)).toBe('kept');
    });

    it('keeps what it acknowledged when it is killed and restarted with its data', async () => {
      await write(running, 'survived');
      await running.kill();
      await expect(read(running)).rejects.toThrow();
      await running.restart({ keepData: true });
      expect(await read(running)).toBe('survived');
    });

    it(`${hasData ? 'is empty' : 'loses nothing, for it keeps nothing,'} when it is restarted without its data`, async () => {
      await running.restart({ keepData: false });
      expect(await read(running)).toBe(hasData ? null : 'survived');
    });

    it('keeps its address over all of that', async () => {
      const before = nodes(running).map(({ url }) => url);
      await running.restart({ keepData: true });
      expect(nodes(running).map(({ url }) => url)).toEqual(before);
    });

    it('leaves no process when it stops, not even while it is paused', async () => {
      const pids = nodes(running).flatMap(({ pid }) => (pid === undefined ? [] : [pid, ...descendants(pid)]));
      expect(pids.length).toBeGreaterThanOrEqual(nodes(running).length);
      await running.pause();
      await running.stop();
      await sleep(100);
      expect(pids.filter(lives)).toEqual([]);
    });
  });
}

/** Processes that `pid` started, as the system lists them. */
export function descendants(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => parentOf(candidate) === pid);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

export function lives(pid: number): boolean {
  return parentOf(pid) !== undefined;
}

function parentOf(pid: number): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    // A zombie has ended; only its parent has not looked yet.
    return fields[0] === 'Z' ? undefined : Number(fields[1]);
  } catch {
    return undefined;
  }
}
