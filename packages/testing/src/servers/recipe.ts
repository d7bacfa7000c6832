/**
 * How one server is started, in the only terms that differ between servers. A recipe is carried out by a program of
 * this machine or by a container; both listen on the same loopback port, so that everything above sees no difference.
 */
import type { ServerKind } from './server.js';

/** One server to start. Everything in it depends on its port, so a recipe is made anew for every port. */
export interface Recipe {
  readonly kind: ServerKind;
  /** The server's port on the loopback address. */
  readonly port: number;
  /** Name of the program. */
  readonly program: string;
  /** The Debian packages that bring it. */
  readonly packages: readonly string[];
  /** The user who runs it where the test runs as root; absent: root itself. */
  readonly unprivilegedUser?: string;
  /** Files that stand in the server's folder before it starts for the first time. */
  readonly files?: (folder: string) => Readonly<Record<string, string>>;
  /** Other programs that make the data folder, in their order. */
  readonly prepare?: (folder: string) => readonly Command[];
  /** Arguments of the program; everything it writes goes into `folder`. */
  readonly args: (folder: string) => readonly string[];
  /** Names in the folder that are the server's data: gone after a restart without data. Default: all but `files`. */
  readonly data?: readonly string[];
  /** Its folder stands in memory, where the machine has a file system for that. Default `false`. */
  readonly inMemory?: boolean;
  /** Ends it so that what it acknowledged is kept. Default SIGTERM. */
  readonly stopSignal?: NodeJS.Signals;
  /** Ends it when its data is of no use any more. Default SIGKILL. */
  readonly quickStop?: NodeJS.Signals;
  /** How long it has to obey a signal, before it is killed, in milliseconds. Default 5,000. */
  readonly endWithinMs?: number;
  readonly image: ImageRecipe;
  /** Asks over the network whether it serves. Rejects where it never will, such as one that asks for a password. */
  readonly isReady: () => Promise<boolean>;
}

/** A program and its arguments. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
}

/** What differs in a container. */
export interface ImageRecipe {
  /** The variable of the environment that names another image. */
  readonly variable: string;
  /** The public image. */
  readonly name: string;
  /** `true`: the image's own entrypoint makes the data folder. Default: the program itself is the entrypoint. */
  readonly ownEntrypoint?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
  /** Arguments, where they are not those of the program; `folder` is a folder of the container. */
  readonly args?: (folder: string) => readonly string[];
  readonly user?: string;
}
