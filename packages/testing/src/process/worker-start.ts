/**
 * How a worker process comes to life: what it is started with is looked at before anything is started, for a process
 * whose start failed half-way would outlive the test that knows nothing of it.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve as resolvePath } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serialize } from 'node:v8';
import { checkOptions, GuardError, invalidArgument } from '@guard/core';
import { requireMethods, requireNumber, requireWhole } from '../argument.js';
import { bootstrapText } from './bootstrap.js';
import type { SharedHoldLog } from './shared-hold-log.js';

/** Warnings that are errors: each means that something grows, or ends at once, that should not. */
const WARNINGS = ['MaxListenersExceededWarning', 'TimeoutOverflowWarning'];
const OPTIONS = ['input', 'wallShiftMs', 'log', 'env', 'execArgv', 'exitWithinMs', 'uid'];

/** How a worker starts. */
export interface WorkerOptions {
  /** What its function gets as `input`. Cloned: bigints, dates and maps arrive whole. */
  readonly input?: unknown;
  /** How much its wall clock (`Date`) is ahead of the machine's, in milliseconds. Its monotonic clock is not. */
  readonly wallShiftMs?: number;
  /**
   * Where its pauses and its death are noted, whatever brought it about, so that they end what it believes to hold. A
   * death is noted when the test hears of it.
   */
  readonly log?: SharedHoldLog;
  /** More variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** More flags of `node`, such as `--conditions=…`. */
  readonly execArgv?: readonly string[];
  /**
   * How long it may live, in milliseconds, after its function has returned: what Guard leaves behind may not keep a
   * process alive (L5). Default 5,000.
   */
  readonly exitWithinMs?: number;
  /** The user who runs it, where the test runs as root. */
  readonly uid?: number;
}

/** Refuses what no worker can be started with. */
export function checkWorker(file: unknown, options: WorkerOptions): void {
  requireFile(file);
  if (statSync(pathOf(file), { throwIfNoEntry: false })?.isFile() !== true) {
    throw invalidArgument('file', String(file), 'must be a file that exists');
  }
  requireObject('options', options);
  const { input, ...others } = options;
  checkOptions('options', others, OPTIONS);
  requireCloneable('options.input', input);
  if (options.wallShiftMs !== undefined) requireNumber('options.wallShiftMs', options.wallShiftMs);
  if (options.exitWithinMs !== undefined) requireNumber('options.exitWithinMs', options.exitWithinMs, 0);
  if (options.uid !== undefined) requireWhole('options.uid', options.uid, 0);
  if (options.log !== undefined) requireMethods('options.log', options.log, 'a SharedHoldLog', ['stopped']);
  if (options.env !== undefined) requireObject('options.env', options.env);
  requireTexts('options.env', Object.values(options.env ?? {}));
  requireTexts('options.execArgv', options.execArgv ?? []);
}

function requireFile(file: unknown): asserts file is string | URL {
  const { protocol } = (file ?? {}) as { readonly protocol?: unknown };
  if (typeof file !== 'string' && protocol !== 'file:') {
    throw invalidArgument(
      'file',
      typeof protocol === 'string' ? String(file) : file,
      'must be a path or a file URL',
    );
  }
}

/** Refuses what cannot travel to another process. */
export function requireCloneable(argument: string, value: unknown): void {
  try {
    serialize(value);
  } catch (error) {
    throw new GuardError('invalid-argument', `${argument} must be something that can be cloned`, {
      cause: error,
    });
  }
}

/** The absolute path of a worker's file. */
export function pathOf(file: string | URL): string {
  return typeof file === 'string' ? resolvePath(file) : fileURLToPath(file);
}

function requireObject(argument: string, value: unknown): void {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
  throw invalidArgument(argument, value, 'must be an object');
}

function requireTexts(argument: string, texts: readonly unknown[]): void {
  const odd: unknown = Array.isArray(texts) ? texts.find((text) => typeof text !== 'string') : texts;
  if (odd !== undefined) throw invalidArgument(argument, odd, 'must hold texts');
}

/** The process, or why there is none: some errors of the system are thrown, others come as an event. */
export function spawnWorker(
  file: string,
  { wallShiftMs = 0, env = {}, execArgv = [], uid }: WorkerOptions,
): { readonly child?: ChildProcess; readonly error?: unknown } {
  const typescript = file.endsWith('.ts') ? toolsFor(file) : undefined;
  const program = bootstrapText({
    file,
    wallShiftMs,
    ...(typescript === undefined ? {} : { compiler: typescript.compiler }),
    cache: join(
      tmpdir(),
      `guard-workers-${process.getuid?.() ?? 'all'}${uid === undefined ? '' : `-${uid}`}`,
    ),
    warnings: WARNINGS,
  });
  const flags = [
    '--unhandled-rejections=strict',
    '--enable-source-maps',
    ...(typescript?.flags ?? []),
    ...execArgv,
  ];
  try {
    const child = spawn(process.execPath, [...flags, '-e', program], {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      serialization: 'advanced',
      env: { ...process.env, ...env },
      ...(uid === undefined ? {} : { uid }),
    });
    return { child };
  } catch (error) {
    return { error };
  }
}

/** What a TypeScript worker needs, found from where it stands. */
function toolsFor(file: string): { readonly compiler: string; readonly flags: readonly string[] } {
  const { resolve } = createRequire(file);
  try {
    const compiler = resolve('@swc/core');
    resolve('@swc/helpers/package.json');
    return { compiler, flags: usesSources(resolve) ? ['--conditions=@guard/source'] : [] };
  } catch (cause) {
    throw new GuardError(
      'unavailable',
      `a worker in TypeScript needs @swc/core and @swc/helpers: npm install --save-dev @swc/core @swc/helpers`,
      { cause },
    );
  }
}

/** Inside Guard's own repository the sources of its packages run, as in every other test; published ones have none. */
function usesSources(resolve: NodeJS.RequireResolve): boolean {
  try {
    return existsSync(join(dirname(resolve('@guard/core/package.json')), 'src', 'index.ts'));
  } catch {
    return false;
  }
}
