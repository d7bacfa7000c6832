/**
 * Where a server comes from: an address in the environment, else an installed program, else a container, else an
 * error that says what to do. Never a test that is silently not run.
 */
import { GuardError } from '@guard/core';
import { ContainerServer, findContainers, type Containers } from './container.js';
import { findProgram, versionIn } from './find-program.js';
import { InTurn } from './in-turn.js';
import { freed, LOOPBACK } from './ports.js';
import { ProgramServer } from './program.js';
import type { Recipe } from './recipe.js';
import { announce } from './announce.js';
import { checkRestart } from './arguments.js';
import type { ServerKind, TestServer } from './server.js';
import { refusedLogin } from './wire.js';

/** How often somebody else may be faster. */
export const START_TRIES = 3;

/** How servers say it. */
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
      if (attempt === START_TRIES || !isPortTaken(error)) throw error;
    }
  }
}

/** Whether a server did not start because somebody else had taken a port between the look and the start. */
export function isPortTaken(error: unknown): boolean {
  return PORT_TAKEN.test((error as Error).message);
}

/** A server that somebody else runs. */
export async function externalServer(
  kind: ServerKind,
  variable: string,
  url: URL,
  ask: () => Promise<string>,
): Promise<TestServer> {
  const answer = await ask().catch((cause: unknown) => {
    const refusal = refusedLogin(cause);
    const where = `at ${url.host}, the address in ${variable}`;
    const what =
      refusal === undefined
        ? `${kind} does not answer ${where}: ${(cause as Error).message}`
        : `${kind} refuses the login ${where}: ${refusal}`;
    throw new GuardError('unavailable', what, { cause });
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
    restart: async (options) => {
      checkRestart(options);
      await refuse();
    },
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
  const isSet = Boolean(process.env[variable]?.trim());
  const address = isSet ? `the address in ${variable}` : `an address in ${variable}`;
  const installed = findProgram(program) === undefined ? '' : `, the installed ${program}`;
  const help = dockerIsForced()
    ? `GUARD_TEST_SERVERS=docker asks for a container, and ${why}. Unset, it lets tests use ${address}${installed}`
    : `${program} is not installed, ${why}, and ${variable} names no address. On Debian: apt-get install ${packages.join(' ')}`;
  return new GuardError('unavailable', `this test needs ${kind}: ${help}`);
}

function dockerIsForced(): boolean {
  const choice = process.env['GUARD_TEST_SERVERS'];
  if (choice !== undefined && choice !== '' && choice !== 'docker') {
    throw new GuardError('invalid-argument', `GUARD_TEST_SERVERS may be "docker" or unset, got "${choice}"`);
  }
  return choice === 'docker';
}

function asServer(running: ProgramServer | ContainerServer, { kind, port }: Recipe): TestServer {
  const inTurn = new InTurn();
  let stopped = false;
  const act = (work: () => Promise<void>): Promise<void> =>
    inTurn.run(async () => {
      if (stopped)
        throw new GuardError('unavailable', `the ${kind} server was stopped, and its data is gone`);
      await work();
    });
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
    stop: () =>
      inTurn.run(async () => {
        if (stopped) return;
        await running.stop();
        stopped = true;
        freed([port]);
      }),
    pause: () => act(() => running.pause()),
    resume: () => act(() => running.resume()),
    kill: () => act(() => running.kill()),
    async restart(options) {
      checkRestart(options);
      await act(() => running.restart(options));
    },
    async [Symbol.asyncDispose]() {
      await this.stop();
    },
  };
}
