/**
 * Carries out a recipe in a container, on the host's network: the server listens on the same kind of address as a
 * program would, so a cluster can name its members to clients. testcontainers is loaded only when it comes to this.
 */
import type * as testcontainers from 'testcontainers';
import { GuardError } from '@guard/core';
import { versionIn } from './find-program.js';
import type { Recipe } from './recipe.js';
import type { RestartOptions } from './server.js';
import { settling, untilReady } from './until-ready.js';

/** Every user may write there, in every image. */
const FOLDER = '/tmp';

/** What is used of the library. */
type Testcontainers = typeof testcontainers;
type Runtime = Awaited<ReturnType<Testcontainers['getContainerRuntimeClient']>>;

/** Why no container can be started, or what starts them. */
export type Containers =
  | { readonly available: true; readonly library: Testcontainers; readonly runtime: Runtime }
  | { readonly available: false; readonly why: string };

/** Looks for testcontainers, and for a container engine. */
export async function findContainers(): Promise<Containers> {
  const library = await import('testcontainers').catch((): undefined => undefined);
  if (library === undefined) return { available: false, why: 'the package testcontainers is not installed' };
  try {
    return { available: true, library, runtime: await library.getContainerRuntimeClient() };
  } catch {
    return { available: false, why: 'no container engine answers' };
  }
}

/** A server that runs in a container. */
export class ContainerServer {
  readonly source = 'container';
  readonly pid = undefined;
  readonly #tools: Containers & { available: true };
  readonly #recipe: Recipe;
  #container: testcontainers.StartedTestContainer;
  #version = 'unknown';

  private constructor(
    tools: Containers & { available: true },
    recipe: Recipe,
    container: testcontainers.StartedTestContainer,
  ) {
    this.#tools = tools;
    this.#recipe = recipe;
    this.#container = container;
  }

  /** Starts it and waits until it serves. */
  static async start(tools: Containers & { available: true }, recipe: Recipe): Promise<ContainerServer> {
    const server = new ContainerServer(tools, recipe, await run(tools.library, recipe));
    try {
      await server.#untilReady();
      const { output } = await server.#container.exec([recipe.program, '--version']);
      server.#version = versionIn(output);
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get version(): string {
    return this.#version;
  }

  async stop(): Promise<void> {
    const container = this.#engine();
    await container.unpause().catch(ignore);
    await container.remove({ force: true, v: true });
  }

  async pause(): Promise<void> {
    await this.#engine().pause();
  }

  async resume(): Promise<void> {
    await this.#engine().unpause();
  }

  async kill(): Promise<void> {
    await this.#engine().kill();
  }

  async restart({ keepData }: RestartOptions): Promise<void> {
    if (keepData) {
      await this.#engine().unpause().catch(ignore);
      await this.#engine().stop({ t: 5 }).catch(ignore);
      await this.#engine().start();
    } else {
      await this.stop();
      this.#container = await run(this.#tools.library, this.#recipe);
    }
    await this.#untilReady();
  }

  #engine(): ReturnType<Runtime['container']['getById']> {
    return this.#tools.runtime.container.getById(this.#container.getId());
  }

  async #untilReady(): Promise<void> {
    let failure: Error | undefined;
    // On the host's network somebody else's server may answer at the port.
    const settled = settling();
    const isReady = async (): Promise<boolean> => {
      const answered = await this.#recipe.isReady();
      const { State: state } = await this.#engine().inspect();
      if (!state.Running) failure = new Error(`its container ended with ${state.ExitCode}`);
      return answered && settled();
    };
    await untilReady({ ...this.#recipe, isReady }, { failure: () => failure, log: () => this.#lastLines() });
  }

  /** It is removed when it does not start, so what it wrote is shown now. */
  async #lastLines(): Promise<string> {
    const options = { follow: false, stdout: true, stderr: true, tail: 15 } as const;
    const log = await this.#engine()
      .logs(options)
      .catch(() => Buffer.from('no log'));
    // Each piece has a head of eight bytes, of which none is a letter that matters.
    return log
      .toString('utf8')
      .replace(/[^\n\x20-\x7e]/g, '')
      .trim();
  }
}

async function run(
  { GenericContainer, Wait }: Testcontainers,
  recipe: Recipe,
): Promise<testcontainers.StartedTestContainer> {
  const { image, program } = recipe;
  const name = process.env[image.variable] ?? image.name;
  const args = (image.args ?? recipe.args)(FOLDER);
  const container = new GenericContainer(name)
    .withNetworkMode('host')
    .withEnvironment({ ...image.environment })
    .withWaitStrategy(Wait.forListeningPorts())
    .withCopyContentToContainer(
      Object.entries(recipe.files?.(FOLDER) ?? {}).map(([file, content]) => ({
        content,
        target: `${FOLDER}/${file}`,
        mode: 0o666,
      })),
    );
  if (image.user !== undefined) container.withUser(image.user);
  if (image.ownEntrypoint) container.withCommand([program, ...args]);
  else container.withEntrypoint([program]).withCommand([...args]);
  try {
    return await container.start();
  } catch (cause) {
    throw new GuardError(
      'unavailable',
      `no container of the image ${name}: ${(cause as Error).message}. ${image.variable} names another image`,
      { cause },
    );
  }
}

function ignore(): void {
  // Not paused, or not running: nothing to undo.
}
