import ts from 'typescript';
import { everyNode, librarySources, parse, sample, where } from './support/source.js';

/** The only files that may read the real clock or make real random numbers. */
const REAL = ['packages/core/src/runtime/clock.ts', 'packages/core/src/runtime/random.ts'];
const FORBIDDEN_MEMBERS = ['Date.now', 'Math.random', 'process.exit'];

describe('determinism', () => {
  it('keeps time, chance, console and process.exit out of library sources', () => {
    const sources = librarySources().filter(({ path }) => !REAL.includes(path));
    expect(sources.flatMap((source) => impurities(parse(source)))).toEqual([]);
  });

  it.each([
    'Date.now()',
    'const now = Date.now;',
    'new Date()',
    'new Date',
    'Date()',
    'Math.random()',
    "console.log('x')",
    'process.exit(1)',
  ])('sees %s', (text) => expect(impurities(sample(text))).toHaveLength(1));

  it.each(['new Date(ms)', 'clock.now()', '// Date.now()', 'const text = "console.log"'])(
    'accepts %s',
    (text) => expect(impurities(sample(text))).toEqual([]),
  );
});

function impurities(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (isImpure(node, file)) {
      problems.push(
        `${where(file, node)}: ${node.getText(file)}; use the guard's clock, its random or an event`,
      );
    }
  });
  return problems;
}

function isImpure(node: ts.Node, file: ts.SourceFile): boolean {
  if (ts.isPropertyAccessExpression(node)) {
    return FORBIDDEN_MEMBERS.includes(node.getText(file)) || isNamed(node.expression, 'console');
  }
  if (ts.isNewExpression(node)) return isNamed(node.expression, 'Date') && !node.arguments?.length;
  return ts.isCallExpression(node) && isNamed(node.expression, 'Date');
}

function isNamed(node: ts.Node, name: string): boolean {
  return ts.isIdentifier(node) && node.text === name;
}
