import ts from 'typescript';
import { everyNode, filesUnder, isSkeleton, packageNames, parse, testSources } from './support/source.js';

/** The promises of the design (safety, liveness, cost) that a test has to name in its title. */
const PROMISES = [
  ...['S1', 'S2', 'S3', 'S4', 'S5', 'S6', 'S7', 'S8', 'S9'],
  ...['L1', 'L3', 'L4', 'L5'],
  ...['C2', 'C3', 'C5'],
];

describe('promises', () => {
  it.each(PROMISES)('%s is named in the title of a test', (promise) => {
    expect(titles.some((title) => title.includes(`[${promise}]`))).toBe(true);
  });

  it('are given by packages that all export something', () => {
    expect(packageNames().filter(isSkeleton)).toEqual([]);
  });
});

/** Texts in test code and in the contract suites, which hold the titles of their cases. Comments do not count. */
const titles = [...testSources(), ...filesUnder('packages/testing/src', '.ts')].flatMap((source) => {
  const texts: string[] = [];
  everyNode(parse(source), (node) => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node)) texts.push(node.text);
  });
  return texts;
});
