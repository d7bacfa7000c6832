/**
 * Pages in Chinese follow their English pages. Nobody can test what a sentence says; so what has no language must be
 * the same: headings, tables, code. Whoever changes one of these meets the translation here.
 */
import { dirname, relative } from 'node:path';
import { blocksOf, linksOf, outlineOf, targetOf, type Page } from './support/markdown.js';
import { originalOf, pages } from './support/pages.js';

/** Its glossary is one table more. */
const INDEX = 'docs/zh-CN/README.md';

const all = pages();
const translations = all
  .filter((page) => originalOf(page) !== undefined)
  .map((page) => [page.path, page] as const);

describe('the pages in Chinese', () => {
  it('are there', () => {
    expect(translations.map(([path]) => path)).toEqual(
      expect.arrayContaining(['README.zh-CN.md', INDEX, 'docs/zh-CN/guide/locks.md']),
    );
  });

  it.each(translations)('%s has the headings of its English page, level by level', (_, page) => {
    expect(outlineOf(page).map(({ level }) => level)).toEqual(
      outlineOf(english(page)).map(({ level }) => level),
    );
  });

  it.each(translations.filter(([path]) => path !== INDEX))('%s has as many rows in its tables', (_, page) => {
    expect(rowsOf(page)).toEqual(rowsOf(english(page)));
  });

  it.each(translations)('%s has the code of its English page, to the letter', (_, page) => {
    expect(codeOf(page)).toEqual(codeOf(english(page)));
  });

  it.each(translations)('%s and its English page link each other first', (_, page) => {
    const original = english(page);
    expect(firstLinkOf(page)).toBe(between(page, original));
    expect(firstLinkOf(original)).toBe(between(original, page));
  });

  it.each(translations)('%s links pages in Chinese where there are any', (_, page) => {
    const translated = new Set(translations.map(([, other]) => originalOf(other)));
    const [, ...others] = linksOf(page);
    expect(others.filter(({ target }) => translated.has(targetOf(page.path, target)))).toEqual([]);
  });

  it('are compared by headings and rows outside of code', () => {
    const text = '# One\n\n| a |\n| - |\n| 1 |\n\n```sh\n# none\n| none |\n```\n\n## Two\n';
    expect(outlineOf({ path: 'a.md', text })).toEqual([
      { level: 1, rows: 3 },
      { level: 2, rows: 0 },
    ]);
  });
});

function english(page: Page): Page {
  const path = originalOf(page);
  const found = all.find((other) => other.path === path);
  if (found === undefined) throw new Error(`${page.path} translates ${path}, which does not exist`);
  return found;
}

/** The rows of tables below each heading that has some, by the heading's place. */
function rowsOf(page: Page): string[] {
  return outlineOf(page).flatMap(({ rows }, index) => (rows === 0 ? [] : [`heading ${index + 1}: ${rows}`]));
}

/** Each block with its marks for the tests, which hold in both editions. */
function codeOf(page: Page): string[] {
  return blocksOf(page).map(({ comments, language, code }) => [...comments, language, code].join('\n'));
}

function firstLinkOf(page: Page): string | undefined {
  return linksOf(page)[0]?.target;
}

function between(from: Page, to: Page): string {
  return relative(dirname(from.path), to.path).replaceAll('\\', '/');
}
