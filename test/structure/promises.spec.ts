import ts from 'typescript';
import { everyNode, filesUnder, isSkeleton, packageNames, parse, testSources } from './support/source.js';

/** The promises of the design (safety, liveness, cost) that a test has to name in its title. */
const PROMISES = [
  ...['S1', 'S2', 'S3', 'S4', 'S5', 'S6', 'S7', 'S8', 'S9'],
  ...['L1', 'L2', 'L3', 'L4', 'L5'],
  ...['C1', 'C2', 'C3', 'C4', 'C5'],
];

describe('promises', () => {
  it.each(PROMISES)('%s is named in the title of a test', (promise) => {
    expect(titles.some((title) => title.includes(`[${promise}]`))).toBe(true);
  });

  it('are those of the design: no title names another one', () => {
    expect(titles.filter(namesUnknown)).toEqual([]);
  });

  it('are not known by a number that the design does not have', () => {
    expect(['[S99] x', '[S10] x', '[L6] x', '[C0] x'].filter(namesUnknown)).toHaveLength(4);
    expect(['[S1] x', 'x [L5]', '[C5] x', 'x [B50]', '[Sx]'].filter(namesUnknown)).toEqual([]);
  });

  it('are given by packages that all export something', () => {
    expect(packageNames().filter(isSkeleton)).toEqual([]);
  });
});

/** S1 to S9, L1 to L5, C1 to C5. */
function namesUnknown(title: string): boolean {
  return [...title.matchAll(/\[([SLC])(\d+)\]/g)].some(
    ([, kind, number]) => !(Number(number) >= 1 && Number(number) <= (kind === 'S' ? 9 : 5)),
  );
}

/**
 * Texts in test code and in the contract suites, which hold the titles of their cases. Comments do not count, nor does
 * this file.
 */
const sources = [...testSources(), ...filesUnder('packages/testing/src', '.ts')].filter(
  ({ path }) => path !== 'test/structure/promises.spec.ts',
);
const titles = sources.flatMap((source) => {
  const texts: string[] = [];
  everyNode(parse(source), (node) => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node)) texts.push(node.text);
  });
  return texts;
});
