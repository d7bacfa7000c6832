/**
 * A core in which one mechanism was taken out: the sources of `@guard/core` as they are, one of them with one place of
 * its text replaced, compiled and loaded beside the real one. The place must be there exactly once, so that a mutation
 * whose mechanism was rewritten fails instead of mutating nothing.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { transformSync } from '@swc/core';
import type { SimulatedCore } from '@guard/testing';

const SOURCES = join(__dirname, '..', '..', '..', 'core', 'src');

/** One mechanism, taken out. */
export interface Mutation {
  /** Below `packages/core/src`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

interface Module {
  exports: unknown;
}

const requireOther = createRequire(__filename);
const compiled = new Map<string, string>();

/** The real core with one mutation. */
export function mutatedCore(mutation: Mutation): SimulatedCore {
  const mutated = join(SOURCES, mutation.file);
  const modules = new Map<string, Module>();
  const load = (path: string): unknown => {
    const known = modules.get(path);
    if (known !== undefined) return known.exports;
    const module: Module = { exports: {} };
    modules.set(path, module);
    const code = path === mutated ? compile(path, mutate(mutation)) : compiledSource(path);
    const requires = (name: string): unknown =>
      name.startsWith('.') ? load(sourceOf(path, name)) : requireOther(name);
    // In this realm, so that errors are instances of the same classes as everywhere in the test.
    // eslint-disable-next-line @typescript-eslint/no-implied-eval
    const run = new Function('exports', 'require', 'module', `${code}\n//# sourceURL=${path}`);
    run(module.exports, requires, module);
    return module.exports;
  };
  return load(join(SOURCES, 'index.ts')) as SimulatedCore;
}

function mutate({ file, find, replace }: Mutation): string {
  const text = readFileSync(join(SOURCES, file), 'utf8');
  const places = text.split(find).length - 1;
  if (places !== 1)
    throw new Error(`${file} has ${places} places like ${JSON.stringify(find)}: adapt the mutation`);
  return text.replace(find, () => replace);
}

function compiledSource(path: string): string {
  let code = compiled.get(path);
  if (code === undefined) {
    code = compile(path, readFileSync(path, 'utf8'));
    compiled.set(path, code);
  }
  return code;
}

function compile(path: string, text: string): string {
  const parser = { syntax: 'typescript', decorators: true } as const;
  const { code } = transformSync(text, {
    filename: path,
    swcrc: false,
    jsc: { target: 'es2022', parser },
    module: { type: 'commonjs' },
  });
  return code;
}

function sourceOf(from: string, name: string): string {
  const path = join(dirname(from), name.replace(/\.js$/, '.ts'));
  if (!existsSync(path)) throw new Error(`${from} imports ${name}, which is not there`);
  return path;
}
