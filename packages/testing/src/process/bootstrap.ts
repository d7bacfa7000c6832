/**
 * The program of a worker process before the worker's own code. It is handed to `node -e` as text, so that it needs
 * no file that a build would have to put somewhere: every function here uses nothing but its arguments, the others,
 * and Node.
 */
import { privateFolder } from './private-folder.js';
import type { Said, ToWorker, WorkerMain, WorkerSetup } from './worker-scope.js';

/** The program's text. */
export function bootstrapText(setup: WorkerSetup): string {
  const parts = [
    ...[shiftWallClock, privateFolder, trimCache, readKept, compileTypeScript],
    ...[receive, openLine, watchProblems, bootstrap],
  ];
  return `${parts.map(String).join('\n')}\nbootstrap(${JSON.stringify(setup)}, privateFolder);`;
}

/** The whole course of a worker. What goes wrong here, or in the worker, ends the process as Node ends it. */
async function bootstrap(setup: WorkerSetup, makePrivate: typeof privateFolder): Promise<void> {
  const { createRequire } = process.getBuiltinModule('node:module');
  const wall = shiftWallClock(setup.wallShiftMs);
  const send = openLine();
  watchProblems(setup.warnings, (text) => void send({ type: 'problem', text }).catch(() => undefined));
  if (setup.compiler !== undefined) {
    makePrivate(setup.cache);
    compileTypeScript(setup.compiler, setup.cache);
  }
  const inbox = receive(wall);
  const input = await inbox.input;
  const loaded = createRequire(setup.file)(setup.file) as { default?: unknown };
  const main = loaded.default as WorkerMain | { default: WorkerMain };
  const work = typeof main === 'function' ? main : main.default;
  const value = await work({
    input,
    tell: (message) => send({ type: 'message', message }),
    hear: <T>() => inbox.hear() as Promise<T>,
  });
  await send({ type: 'returned', value });
  // Not closed: what goes wrong until the end of the process is still told. It keeps nothing alive.
  process.channel?.unref();
}

/** The line to the test. Taken before the worker's code can replace `process.send`. */
function openLine(): (said: Said) => Promise<void> {
  const send = process.send!.bind(process);
  return (said) =>
    new Promise((resolve, reject) => {
      send({ mark: 'guard-worker', ...said }, undefined, undefined, (error) =>
        error ? reject(error) : resolve(),
      );
    });
}

/**
 * Sees what must not happen, whatever the worker's code listens to or removes: Node calls `process.emit` for every
 * exception and, as rejections are strict here, for every rejection that nobody handles, before any handler can hide it.
 */
function watchProblems(warnings: readonly string[], report: (text: string) => void): void {
  const textOf = (error: unknown): string => {
    try {
      return String((error as Error | undefined)?.stack ?? error);
    } catch {
      return 'something that has no text';
    }
  };
  const emit = process.emit.bind(process) as (event: string | symbol, ...details: unknown[]) => boolean;
  process.emit = ((event: string | symbol, ...details: unknown[]): boolean => {
    const [error, origin] = details;
    if (event === 'uncaughtExceptionMonitor') {
      report(
        `${origin === 'unhandledRejection' ? 'unhandled rejection' : 'uncaught exception'}: ${textOf(error)}`,
      );
    } else if (event === 'warning' && warnings.includes(String((error as Error | undefined)?.name)))
      report(textOf(error));
    return emit(event, ...details);
  }) as typeof process.emit;
}

/** Sorts what the test sends. */
function receive(wall: { shiftMs: number }): { input: Promise<unknown>; hear: () => Promise<unknown> } {
  const waiting: unknown[] = [];
  const readers: ((message: unknown) => void)[] = [];
  let take: (input: unknown) => void;
  const input = new Promise<unknown>((resolve) => (take = resolve));
  process.on('message', (received: ToWorker) => {
    if (received.type === 'input') take(received.input);
    else if (received.type === 'shift') wall.shiftMs = received.wallShiftMs;
    else if (readers.length > 0) readers.shift()?.(received.message);
    else waiting.push(received.message);
  });
  const hear = (): Promise<unknown> =>
    waiting.length > 0
      ? Promise.resolve(waiting.shift())
      : new Promise((resolve) => void readers.push(resolve));
  return { input, hear };
}

/** Moves what `Date` says, for everything that is loaded later. The monotonic clocks and all timers stay as they are. */
function shiftWallClock(shiftMs: number): { shiftMs: number } {
  const wall = { shiftMs };
  const Real = Date;
  const now = (): number => Real.now() + wall.shiftMs;
  const Shifted = new Proxy(Real, {
    get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
    apply: () => new Real(now()).toString(),
    construct: (target, args: [], newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
  });
  Real.prototype.constructor = Shifted;
  globalThis.Date = Shifted;
  return wall;
}

/**
 * Lets `require` load TypeScript: compiled to CommonJS, and kept under the hash of the source, for a worker loads
 * hundreds of files and most tests start several. A relative import names the .js file that a build would make.
 */
function compileTypeScript(compiler: string, cache: string): void {
  const fs = process.getBuiltinModule('node:fs');
  const path = process.getBuiltinModule('node:path');
  const crypto = process.getBuiltinModule('node:crypto');
  const Module = process.getBuiltinModule('node:module') as unknown as {
    createRequire: (file: string) => NodeJS.Require;
    _resolveFilename: (request: string, parent?: { filename?: string }, ...rest: unknown[]) => string;
    _extensions: Record<
      string,
      (module: { _compile: (code: string, file: string) => void }, file: string) => void
    >;
  };
  const options = {
    swcrc: false,
    sourceMaps: 'inline',
    jsc: {
      target: 'es2022',
      keepClassNames: true,
      // Without it, swc loses both errors when a body and its `await using` disposer throw.
      externalHelpers: true,
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
    module: { type: 'commonjs' },
  };
  let trimmed = false;
  const resolveAsNode = Module._resolveFilename;
  Module._resolveFilename = (request, parent, ...rest) => {
    if (/^\.\.?\/.*\.js$/.test(request) && parent?.filename?.endsWith('.ts')) {
      const source = path.resolve(path.dirname(parent.filename), request.replace(/\.js$/, '.ts'));
      if (fs.existsSync(source)) return source;
    }
    return resolveAsNode(request, parent, ...rest);
  };
  Module._extensions['.ts'] = (module, file) => {
    const source = fs.readFileSync(file, 'utf8');
    const hash = crypto
      .createHash('sha256')
      .update(JSON.stringify([options, compiler, file, source]))
      .digest('hex');
    const kept = `${cache}/${hash}.js`;
    const code = readKept(kept);
    if (code !== undefined) return module._compile(code, file);
    const { transformSync } = Module.createRequire(file)(compiler) as {
      transformSync: (code: string, settings: object) => { code: string };
    };
    const compiled = transformSync(source, { ...options, filename: file }).code;
    // Another worker may be writing the same file: each one's appears as a whole.
    const own = `${kept}.${process.pid}`;
    fs.writeFileSync(own, compiled);
    if (!trimmed) trimCache(cache, own);
    trimmed = true;
    fs.renameSync(own, kept);
    module._compile(compiled, file);
  };
}

/** Compiled code that another worker left; `undefined` where there is none, or it was just taken away. */
function readKept(file: string): string | undefined {
  const fs = process.getBuiltinModule('node:fs');
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Takes away what was compiled a week before `own`: sources change, and nobody asks for their old code again. */
function trimCache(cache: string, own: string): void {
  const fs = process.getBuiltinModule('node:fs');
  const path = process.getBuiltinModule('node:path');
  const oldestMs = fs.statSync(own).mtimeMs - 7 * 24 * 3_600_000;
  // So few that no worker waits long. The names are hashes, so each worker begins elsewhere.
  const names = fs.readdirSync(cache);
  const from = names.indexOf(path.basename(own));
  for (const name of [...names.slice(from), ...names.slice(0, from)].slice(0, 5_000)) {
    const file = `${cache}/${name}`;
    const stat = fs.lstatSync(file, { throwIfNoEntry: false });
    if (stat?.isFile() && stat.mtimeMs < oldestMs) fs.rmSync(file, { force: true });
  }
}
