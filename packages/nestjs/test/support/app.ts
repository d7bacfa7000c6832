/** Small Nest applications for tests, closed after each; and what they logged. */
import 'reflect-metadata';
import type { Guard } from '@guard/core';
import { type INestApplication, Logger, type LoggerService, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { getGuardToken } from '@guard/nestjs';

const open = new Set<{ close(): Promise<unknown> }>();

/** Keeps what is logged, by level. */
export class KeptLogger implements LoggerService {
  readonly logged: string[] = [];
  readonly warned: string[] = [];
  readonly errors: unknown[] = [];
  readonly debugged: unknown[] = [];
  log(message: unknown): void {
    this.logged.push(String(message));
  }
  warn(message: unknown): void {
    this.warned.push(String(message));
  }
  error(message: unknown): void {
    this.errors.push(message);
  }
  debug(message: unknown): void {
    this.debugged.push(message);
  }
}

/** A module that is compiled and not initialised. */
export async function compiled(
  metadata: ModuleMetadata,
  change: (builder: TestingModuleBuilder) => TestingModuleBuilder = (builder) => builder,
  logger: LoggerService = new KeptLogger(),
): Promise<TestingModule> {
  const module = await change(Test.createTestingModule(metadata)).setLogger(logger).compile();
  open.add(module);
  return module;
}

/** An initialised application. */
export async function started(metadata: ModuleMetadata, logger?: LoggerService): Promise<TestingModule> {
  const module = await compiled(metadata, undefined, logger);
  try {
    return await module.init();
  } catch (error) {
    // Nest refuses to close what did not come up.
    open.delete(module);
    throw error;
  }
}

/** An application that answers by HTTP, and its address. */
export async function serving(
  metadata: ModuleMetadata,
  prepare: (app: INestApplication) => void = () => undefined,
): Promise<{ readonly app: INestApplication; readonly url: string }> {
  const module = await Test.createTestingModule(metadata).setLogger(new KeptLogger()).compile();
  const app = module.createNestApplication();
  open.add(app);
  prepare(app);
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl() };
}

/** The guard of an application. */
export function guardOf(app: { get(token: symbol): unknown }, name?: string): Guard {
  return app.get(getGuardToken(name)) as Guard;
}

/** The error that booting ends with. */
export async function bootError(metadata: ModuleMetadata): Promise<Error> {
  try {
    await started(metadata);
  } catch (error) {
    return error as Error;
  }
  throw new Error('the application came up');
}

/** Closes what is open. */
export async function closeAll(): Promise<void> {
  const all = [...open];
  open.clear();
  await Promise.all(all.map((app) => app.close()));
  Logger.overrideLogger(false);
}

/** Real time passes until something is true. */
export async function until(isTrue: () => boolean, withinMs = 10_000): Promise<void> {
  for (const endMs = performance.now() + withinMs; !isTrue();) {
    if (performance.now() > endMs) throw new Error('it did not become true');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
