/** The pages that people read. Pages that a script writes are no part of them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesUnder, root } from '../../structure/support/source.js';
import type { Page } from './markdown.js';

const WRITTEN_BY_SCRIPTS = /(^|\/)(CHANGELOG|api)\.md$/;

/** Every page of the repository. */
export function pages(): Page[] {
  const top = ['README.md', 'README.zh-CN.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']
    .filter((path) => existsSync(join(root, path)))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
  const below = ['docs', 'packages', 'examples', 'benchmarks'].flatMap((folder) => filesUnder(folder, '.md'));
  return [...top, ...below].filter(({ path }) => !WRITTEN_BY_SCRIPTS.test(path));
}

/** The English page that a page in Chinese translates; `undefined` for every other page. */
export function originalOf({ path }: Page): string | undefined {
  if (path.startsWith('docs/zh-CN/')) return path.replace('docs/zh-CN/', 'docs/');
  return path.endsWith('.zh-CN.md') ? path.replace('.zh-CN.md', '.md') : undefined;
}
