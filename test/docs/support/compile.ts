/**
 * Checks the types of all samples in one program, against the sources of the packages: one start of the compiler for
 * the whole documentation. The samples exist in memory only, as if they stood beside `context.ts`.
 */
import { join } from 'node:path';
import ts from 'typescript';
import { root } from '../../structure/support/source.js';
import type { Sample } from './samples.js';

/** What the compiler says about each sample, by the sample's name. Lines are those of the page's block. */
export function typeErrors(samples: readonly Sample[]): Map<string, string[]> {
  const options = compilerOptions();
  const files = new Map(samples.map((sample, index) => [fileOf(index), sample]));
  const host = ts.createCompilerHost(options, true);
  const { fileExists, getSourceFile, readFile } = host;
  host.fileExists = (path) => files.has(path) || fileExists.call(host, path);
  host.readFile = (path) => files.get(path)?.source ?? readFile.call(host, path);
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const sample = files.get(path);
    if (sample === undefined) return getSourceFile.call(host, path, languageVersion, ...rest);
    return ts.createSourceFile(path, sample.source, languageVersion, true);
  };
  const program = ts.createProgram({ rootNames: [...files.keys()], options, host });
  const errors = new Map<string, string[]>(samples.map(({ name }) => [name, []]));
  for (const [path, { name }] of files) {
    const file = program.getSourceFile(path);
    const found = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    errors.set(name, found.map(messageOf));
  }
  return errors;
}

/** The sample as JavaScript that `require`s what it imports. */
export function emit({ source }: Sample): string {
  const { target, experimentalDecorators } = compilerOptions();
  const compilerOptionsForRun = { target, experimentalDecorators, module: ts.ModuleKind.CommonJS };
  return ts.transpileModule(source, { compilerOptions: compilerOptionsForRun as ts.CompilerOptions })
    .outputText;
}

function messageOf(diagnostic: ts.Diagnostic): string {
  const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n');
  if (diagnostic.file === undefined || diagnostic.start === undefined) return text;
  const { line } = diagnostic.file.getLineAndCharacterOfPosition(diagnostic.start);
  return `line ${line} of the block: ${text}`;
}

function fileOf(index: number): string {
  return join(root, 'test', 'docs', `sample-${index}.ts`).replaceAll('\\', '/');
}

let options: ts.CompilerOptions | undefined;

function compilerOptions(): ts.CompilerOptions {
  options ??= readOptions();
  return options;
}

function readOptions(): ts.CompilerOptions {
  const path = join(root, 'tsconfig.lint.json');
  const { config } = ts.readConfigFile(path, (file) => ts.sys.readFile(file)) as { readonly config: object };
  // Only the options are wanted: looking for files would read the whole repository.
  return ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root).options;
}
