import ts from 'typescript';
import { everyNode, librarySources, parse, sample, where } from './support/source.js';

const MAX_FILE_LINES = 300;
const MAX_FUNCTION_LINES = 70;

describe('size', () => {
  it(`keeps every source file at or below ${MAX_FILE_LINES} lines`, () => {
    const tooLong = librarySources()
      .map(({ path, text }) => ({ path, lines: text.trimEnd().split('\n').length }))
      .filter(({ lines }) => lines > MAX_FILE_LINES)
      .map(({ path, lines }) => `${path} has ${lines} lines; split it`);
    expect(tooLong).toEqual([]);
  });

  it(`keeps every function at or below ${MAX_FUNCTION_LINES} lines of code`, () => {
    expect(librarySources().flatMap((source) => longFunctions(parse(source)))).toEqual([]);
  });

  it('counts lines of code, not blank lines and comments', () => {
    const body = (lines: number): string => Array.from({ length: lines }, (_, i) => `  f(${i});\n`).join('');
    const comments = '  // why\n  /* and\n     why */\n\n';
    expect(longFunctions(sample(`function fits() {\n${comments}${body(68)}}`))).toEqual([]);
    expect(longFunctions(sample(`class A { long = () => {\n${body(69)}}; }`))).toHaveLength(1);
  });
});

function longFunctions(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (!ts.isFunctionLike(node)) return;
    const lines = codeLines(node.getText(file));
    if (lines <= MAX_FUNCTION_LINES) return;
    problems.push(`${where(file, node)}: a function of ${lines} lines; split it`);
  });
  return problems;
}

function codeLines(text: string): number {
  const scanner = ts.createScanner(ts.ScriptTarget.ES2022, true, ts.LanguageVariant.Standard, text);
  const lines = new Set<number>();
  const starts = lineStarts(text);
  for (let token = scanner.scan(); token !== ts.SyntaxKind.EndOfFileToken; token = scanner.scan()) {
    const last = lineAt(starts, scanner.getTokenEnd() - 1);
    for (let line = lineAt(starts, scanner.getTokenStart()); line <= last; line++) lines.add(line);
  }
  return lines.size;
}

function lineStarts(text: string): number[] {
  return [0, ...[...text.matchAll(/\n/g)].map((match) => match.index + 1)];
}

function lineAt(starts: number[], position: number): number {
  return starts.filter((start) => start <= position).length;
}
