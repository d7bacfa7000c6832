import ts from 'typescript';
import { everyNode, parse, sample, testSources, where } from './support/source.js';

const RUNNERS = ['it', 'test', 'describe'];
const SWITCHES = ['only', 'skip', 'todo', 'failing'];
const SHORT_FORMS = ['fit', 'fdescribe', 'xit', 'xtest', 'xdescribe'];

describe('tests', () => {
  it('has no focused, skipped or planned tests', () => {
    expect(testSources().flatMap((source) => switchedTests(parse(source)))).toEqual([]);
  });

  it.each([
    "it.only('x', f)",
    "describe.skip('x', f)",
    "it.todo('x')",
    "xit('x', f)",
    "it.skip.each([1])('x', f)",
  ])('sees %s', (text) => expect(switchedTests(sample(text))).toHaveLength(1));

  it('lets a contract suite have the function that reports a case as skipped', () => {
    expect(switchedTests(sample('describeLockBackend({ skip: it.skip })'))).toEqual([]);
  });
});

function switchedTests(file: ts.SourceFile): string[] {
  const problems: string[] = [];
  everyNode(file, (node) => {
    if (!ts.isCallExpression(node) || ts.isCallExpression(node.expression)) return;
    const [name = '', ...members] = node.expression.getText(file).split('.');
    const switched = RUNNERS.includes(name) && members.some((member) => SWITCHES.includes(member));
    if (!switched && !SHORT_FORMS.includes(name)) return;
    problems.push(`${where(file, node)}: ${node.expression.getText(file)}; every test runs, or is deleted`);
  });
  return problems;
}
