/**
 * Where a server comes from: an address in the environment, else an installed program, else a container, else an
 * error that says what to do. Never a test that is silently not run.
 */
import { GuardError } from '@guard/core';
import { ContainerServer, findContainers, type Containers } from './container.js';
import { findProgram, versionIn } from './find-program.js';
import { freed } from './ports.js';
import { ProgramServer } from './program.js';
import type { Recipe } from './recipe.js';
import { announce } from './announce.js';
import { LOOPBACK } from './ports.js';
import type { ServerKind, TestServer } from './server.js';

const START_TRIES = 3;
/** What a server says whose port was taken between the look and the start. */
const PORT_TAKEN = /address already in use|could not bind|only one usage/i;

/** How to start one server that no address in the environment names. */
export interface StartPlan<T extends TestServer> {
  /** The variable that would have named it, for the error. */
  readonly variable: string;
  /** Makes the recipe, on free ports. */
  readonly recipe: () => Promise<Recipe>;
  /** Adds what this kind of server has beside the common words. */
  readonly finish: (server: TestServer) => T;
}

/** Starts one server, on other ports when somebody was faster. */
export async function startServer<T extends TestServer>(plan: StartPlan<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const recipe = await plan.recipe();
    try {
      const running = await carryOut(recipe, plan.variable);
      announce(running, recipe.kind);
      return plan.finish(asServer(running, recipe));
    } catch (error) {
      freed([recipe.port]);
      if (attempt === START_TRIES || !PORT_TAKEN.test((error as Error).message)) throw error;
    }
  }
}

/** A server that somebody else runs. */
export async function externalServer(
  kind: ServerKind,
  variable: string,
  url: URL,
  ask: () => Promise<string>,
): Promise<TestServer> {
  const answer = await ask().catch((cause: unknown) => {
    throw new GuardError(
      'unavailable',
      `${kind} does not answer at ${url.host}, the address in ${variable}`,
      { cause },
    );
  });
  const refuse = async (): Promise<never> => {
    throw new GuardError(
      'unavailable',
      `${kind} at ${url.host} was not started by this test, which leaves it alone`,
    );
  };
  const server: TestServer = {
    kind,
    version: versionIn(answer),
    source: 'environment',
    host: url.hostname,
    port: Number(url.port),
    url: url.href,
    pid: undefined,
    stop: async () => undefined,
    pause: refuse,
    resume: refuse,
    kill: refuse,
    restart: refuse,
    [Symbol.asyncDispose]: async () => undefined,
  };
  announce(server, kind);
  return server;
}

async function carryOut(recipe: Recipe, variable: string): Promise<ProgramServer | ContainerServer> {
  const path = dockerIsForced() ? undefined : findProgram(recipe.program);
  if (path !== undefined) return ProgramServer.start(path, recipe);
  const containers = await findContainers();
  if (containers.available) return ContainerServer.start(containers, recipe);
  throw nothingToStart(recipe, variable, containers);
}

function nothingToStart(
  { kind, program, packages }: Recipe,
  variable: string,
  { why }: Containers & { available: false },
): GuardError {
  const looked = dockerIsForced()
    ? 'GUARD_TEST_SERVERS=docker asks for a container'
    : `${program} is not installed`;
  return new GuardError(
    'unavailable',
    `this test needs ${kind}: ${looked}, ${why}, and ${variable} names no address. On Debian: apt-get install ${packages.join(' ')}`,
  );
}

function dockerIsForced(): boolean {
  const choice = process.env['GUARD_TEST_SERVERS'];
  if (choice !== undefined && choice !== '' && choice !== 'docker') {
    throw new GuardError('invalid-argument', `GUARD_TEST_SERVERS may be "docker" or unset, got "${choice}"`);
  }
  return choice === 'docker';
}

function asServer(running: ProgramServer | ContainerServer, { kind, port }: Recipe): TestServer {
  return {
    kind,
    version: running.version,
    source: running.source,
    host: LOOPBACK,
    port,
    url: `${kind}://${LOOPBACK}:${port}`,
    get pid() {
      return running.pid;
    },
    async stop() {
      await running.stop();
      freed([port]);
    },
    pause: () => running.pause(),
    resume: () => running.resume(),
    kill: () => running.kill(),
    restart: (options) => running.restart(options),
    async [Symbol.asyncDispose]() {
      await this.stop();
    },
  };
}
