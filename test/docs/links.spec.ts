/** Links inside the documentation lead somewhere, and pages of one kind have one form. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isSkeleton, packageNames, root } from '../structure/support/source.js';
import {
  anchorsOf,
  blocksOf,
  headingsOf,
  linksOf,
  targetOf,
  type Link,
  type Page,
} from './support/markdown.js';
import { pages } from './support/pages.js';

const all = pages();
/** Where a file that a page names may stand, besides in the folder of the page. */
const SOURCES = ['.', 'packages/core/src', 'packages/typeorm/src', 'packages/testing/src'];
const BACKEND_HEADINGS = ['Example', 'Guarantees', 'How it works', 'Options'];

describe('the documentation', () => {
  it('has no link that leads nowhere', () => {
    expect(all.flatMap((page) => linksOf(page).flatMap((link) => problemOf(link, all)))).toEqual([]);
  });

  it('names no source file that does not exist', () => {
    const current = all.filter(isCurrent);
    const named = current.flatMap((page) => filesNamedIn(page).map((file) => ({ page: page.path, file })));
    expect(named.length).toBeGreaterThan(0);
    const isThere = (folder: string, file: string): boolean => existsSync(join(root, folder, file));
    expect(
      named.filter(({ page, file }) => ![dirname(page), ...SOURCES].some((folder) => isThere(folder, file))),
    ).toEqual([]);
  });

  it('gives every backend page the same headings in the same order', () => {
    const backends = all.filter(({ path }) => path.startsWith('docs/backend/'));
    expect(backends.length).toBeGreaterThan(0);
    for (const page of backends)
      expect([page.path, headingsOf(page, 2)]).toEqual([page.path, BACKEND_HEADINGS]);
  });

  it('has no page in docs that neither the README nor an index of docs links, by itself or by its folder', () => {
    const index = all.filter(({ path }) => /^(README|docs\/(zh-CN\/)?README)\.md$/.test(path));
    const linked = new Set(
      index.flatMap((page) => linksOf(page).map(({ target }) => targetOf(page.path, target))),
    );
    const orphans = all
      .map(({ path }) => path)
      .filter((path) => path.startsWith('docs/') && !linked.has(path) && !linked.has(dirname(path)));
    expect(orphans.filter((path) => path !== 'docs/README.md')).toEqual([]);
  });
});

describe('the README', () => {
  const readme = all.find(({ path }) => path === 'README.md')!;

  it('has a first example of at most 25 lines', () => {
    const first = blocksOf(readme).find(({ language }) => language === 'ts');
    expect(first?.code.trimEnd().split('\n').length).toBeLessThanOrEqual(25);
  });

  it('names every package that can be used, and links none that is not there', () => {
    const linked = linksOf(readme).flatMap(({ target }) => /^packages\/([^/]+)\/?$/.exec(target)?.[1] ?? []);
    const usable = packageNames().filter((name) => !isSkeleton(name));
    expect(linked.length).toBeGreaterThan(0);
    expect(linked.filter((name) => !usable.includes(name))).toEqual([]);
    expect(usable.filter((name) => !readme.text.includes(`\`@guard/${name}\``))).toEqual([]);
  });
});

describe('a link', () => {
  const page = (path: string, text: string): Page => ({ path, text });
  const others = [page('docs/a.md', '# One two\n\n## `three` & four!\n\n## One two\n')];
  const readme = page('README.md', '');

  it.each([
    'a.md#one-two',
    './a.md#three--four',
    'a.md#one-two-1',
    'https://example.org/x#y',
    '../README.md',
  ])('to %s is good', (target) => {
    const [link] = linksOf(page('docs/b.md', `see [it](${target})`));
    expect(problemOf(link!, [...others, readme])).toEqual([]);
  });

  it.each(['a.md#three', 'no-such-page.md', '#here', '/docs/a.md', 'http://example.org'])(
    'to %s is seen',
    (target) => {
      const [link] = linksOf(page('docs/b.md', `see [it](${target})`));
      expect(problemOf(link!, [...others, page('docs/b.md', '# There')])).toHaveLength(1);
    },
  );

  it('in code is none', () => {
    expect(linksOf(page('a.md', '`[x](y)`\n\n```md\n[x](y)\n```\n'))).toEqual([]);
  });
});

/** A decision stays as it was written, and pages for users of a package name files of theirs. */
function isCurrent({ path }: Page): boolean {
  return /^(README|ARCHITECTURE)\.md$|^docs\//.test(path) && !path.startsWith('docs/adr/');
}

/** Paths of source files in inline code, such as `runtime/lock/locks.ts`. A name without a folder is no path. */
function filesNamedIn({ text }: Page): string[] {
  return [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+\.(?:ts|mjs))`/g)].map((match) => match[1]!);
}

function problemOf(link: Link, known: readonly Page[]): string[] {
  const { page, line, target } = link;
  const says = (problem: string): string[] => [`${page}:${line}: ${target} ${problem}`];
  if (/^https:\/\/[^/]+/.test(target)) return [];
  if (/^[a-z]+:|^\//.test(target)) return says('is neither relative nor https');
  const anchor = /#(.*)$/.exec(target)?.[1];
  const path = targetOf(page, target);
  const linked = known.find((other) => other.path === path);
  if (linked === undefined && !existsSync(join(root, path))) return says('does not exist');
  if (anchor === undefined) return [];
  return linked !== undefined && anchorsOf(linked).includes(anchor) ? [] : says('has no such heading');
}
