/**
 * A server that a test can do anything to. Wherever it comes from, it has the same words: they act on this one server
 * by its process id or container, so that nobody else's is ever touched.
 */
import { checkRestart } from './arguments.js';

/** What runs. */
export type ServerKind = 'redis' | 'etcd' | 'postgres' | 'mariadb' | 'pgbouncer';

/** Where a server comes from. */
export type ServerSource =
  /** An address in the environment; it belongs to somebody else, so nothing can be done to it. */
  | 'environment'
  /** An installed program, started for this test. */
  | 'program'
  /** A container, started for this test. */
  | 'container';

/**
 * What a test can do to what it started. What is called while something else is being done to the server waits for
 * that; after `stop` nothing can be done any more. At a server of the environment each rejects, but for `stop`.
 */
export interface ServerControl extends AsyncDisposable {
  /** Ends it and removes its data. A server of the environment is left alone. */
  stop(): Promise<void>;
  /** Stops its processes where they are (SIGSTOP): connections stay open, nothing answers. */
  pause(): Promise<void>;
  /** Lets them go on (SIGCONT). */
  resume(): Promise<void>;
  /** Kills it as a crash would (SIGKILL). Its data stays for a `restart`. */
  kill(): Promise<void>;
  /** Ends it, if it runs, and starts it again at the same address, with its data or without. */
  restart(options: RestartOptions): Promise<void>;
}

/** How to start again. */
export interface RestartOptions {
  /** `false`: as a new, empty server. */
  readonly keepData: boolean;
}

/** One server. */
export interface TestServer extends ServerControl {
  readonly kind: ServerKind;
  /** As the program says it, `unknown` where it does not say. */
  readonly version: string;
  readonly source: ServerSource;
  readonly host: string;
  readonly port: number;
  /** The address as one text, with user and password where there are some. */
  readonly url: string;
  /** The process that listens; `undefined` where it is not a process of this machine, or not running. */
  readonly pid: number | undefined;
}

/** Several servers that make one service. The words act on all of them. */
export interface ServerGroup<S extends TestServer = TestServer> extends ServerControl {
  readonly kind: ServerKind;
  readonly version: string;
  readonly source: ServerSource;
  readonly nodes: readonly S[];
}

/** The words of a group, from those of its members. */
export function controlAll(nodes: readonly ServerControl[]): ServerControl {
  const each = async (act: (node: ServerControl) => Promise<void>): Promise<void> => {
    await Promise.all(nodes.map(act));
  };
  return {
    stop: () => each((node) => node.stop()),
    pause: () => each((node) => node.pause()),
    resume: () => each((node) => node.resume()),
    kill: () => each((node) => node.kill()),
    restart: async (options) => {
      checkRestart(options);
      await each((node) => node.restart(options));
    },
    [Symbol.asyncDispose]: () => each((node) => node.stop()),
  };
}

/** Waits for servers that start at once. Where one does not, the others are stopped: nobody would get to know them. */
export async function startTogether<S extends ServerControl>(starts: readonly Promise<S>[]): Promise<S[]> {
  const ends = await Promise.allSettled(starts);
  const servers = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure === undefined) return servers;
  await stopAll(servers);
  throw failure.reason;
}

/** Runs `work` on servers that have started, and stops them where it rejects. */
export async function orStop<S extends ServerControl, T>(
  servers: readonly S[],
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await stopAll(servers);
    throw error;
  }
}

/** The error that led to this says more than one of a server that does not stop. */
async function stopAll(servers: readonly ServerControl[]): Promise<void> {
  await Promise.allSettled(servers.map((server) => server.stop()));
}
