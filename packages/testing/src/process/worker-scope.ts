/** What a worker's own code sees of the test. */

/**
 * The default export of a worker's file. The process ends when the promise has settled and nothing else keeps it
 * alive; what it resolves to is what `finish()` answers in the test. What it sends with `process.send` nobody hears.
 */
export type WorkerMain<I = unknown, O = unknown> = (scope: WorkerScope<I>) => Promise<O> | O;

/** Handed to the worker's function. Everything that travels is cloned: bigints, dates, maps and errors arrive whole. */
export interface WorkerScope<I = unknown> {
  /** What the test handed in. */
  readonly input: I;
  /** Tells the test something; resolves when it is on its way. */
  tell(message: unknown): Promise<void>;
  /** The test's next message, or one that came before. */
  hear<T = unknown>(): Promise<T>;
}

/** How a worker process is set up; travels as JSON on its command line. */
export interface WorkerSetup {
  readonly file: string;
  readonly wallShiftMs: number;
  /** Absolute path of `@swc/core`, where the file is TypeScript. */
  readonly compiler?: string;
  /** Folder of compiled sources, shared by all workers. */
  readonly cache: string;
  readonly warnings: readonly string[];
}

/** From the test to the worker. */
export type ToWorker =
  | { readonly type: 'input'; readonly input: unknown }
  | { readonly type: 'message'; readonly message: unknown }
  | { readonly type: 'shift'; readonly wallShiftMs: number };

/** From the worker to the test. The mark tells it from what the code under test itself sends to a parent process. */
export type FromWorker = { readonly mark: 'guard-worker' } & Said;

/** What a worker's program says. */
export type Said =
  | { readonly type: 'message'; readonly message: unknown }
  | { readonly type: 'problem'; readonly text: string }
  | { readonly type: 'returned'; readonly value: unknown };
