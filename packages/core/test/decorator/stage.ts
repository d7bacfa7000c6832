/** One guard in memory on real time, and classes made by each compiler that people use. */
import { transformSync } from '@swc/core';
import { createGuard, memoryLocks, memoryState, type Guard } from '@guard/core';
import * as core from '@guard/core';
import ts from 'typescript';

const guards: Guard[] = [];

/** A guard on backends of its own, or on those of another. */
export function newGuard(shared = { locks: memoryLocks(), state: memoryState() }): Guard {
  const guard = createGuard(shared);
  guards.push(guard);
  return guard;
}

/** Ends every guard that was made. */
export async function closeGuards(): Promise<void> {
  await Promise.all(guards.splice(0).map((guard) => guard.close()));
}

/** Ways to turn the same source into JavaScript. */
export const COMPILERS = {
  'tsc, legacy': (source: string) => byTypeScript(source, true),
  'tsc, standard': (source: string) => byTypeScript(source, false),
  'swc, legacy': (source: string) => bySwc(source, true),
  'swc, standard': (source: string) => bySwc(source, false),
} as const;

/** What a module exports, compiled and loaded. */
export function load<T>(compile: (source: string) => string, source: string): T {
  const code = compile(source);
  const exports = {} as T;
  const modules: Readonly<Record<string, unknown>> = { '@guard/core': core };
  const load = (name: string): unknown => modules[name];
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the point: the same text by every compiler
  new Function('require', 'exports', code)(load, exports);
  return exports;
}

function byTypeScript(source: string, legacy: boolean): string {
  return ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.CommonJS,
      experimentalDecorators: legacy,
      emitDecoratorMetadata: legacy,
    },
  }).outputText;
}

function bySwc(source: string, legacy: boolean): string {
  return transformSync(source, {
    swcrc: false,
    jsc: {
      target: 'es2022',
      keepClassNames: true,
      parser: { syntax: 'typescript', decorators: true },
      transform: legacy
        ? { legacyDecorator: true, decoratorMetadata: true }
        : { decoratorVersion: '2022-03' },
    },
    module: { type: 'commonjs' },
  }).code;
}
