/**
 * Every code sample of the documentation is compiled against the packages as they are, and those that say so are
 * carried out. How a page marks them: `support/samples.ts`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as core from '@guard/core';
import * as nestjs from '@guard/nestjs';
import * as testing from '@guard/testing';
import * as adapters from '@guard/typeorm';
import * as nestTesting from '@nestjs/testing';
import * as typeorm from 'typeorm';
import { closeAll, setup } from './context.js';
import { typeErrors } from './support/compile.js';
import type { Page } from './support/markdown.js';
import { originalOf, pages } from './support/pages.js';
import { run } from './support/run.js';
import { samplesOf } from './support/samples.js';

// A translation has the very samples of its page (translations.spec.ts): once is enough.
const found = pages()
  .filter((page) => originalOf(page) === undefined)
  .map(samplesOf);
const samples = found.flatMap((page) => page.samples);
const MODULES: Readonly<Record<string, unknown>> = {
  '@guard/core': core,
  '@guard/nestjs': nestjs,
  '@guard/testing': testing,
  '@guard/typeorm': adapters,
  '@nestjs/testing': nestTesting,
  typeorm,
  './context.js': { setup },
};

// Files that samples make are theirs, and go with them.
const home = process.cwd();
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'guard-docs-'));
  process.chdir(folder);
});
afterEach(async () => {
  process.chdir(home);
  await closeAll();
  rmSync(folder, { recursive: true });
});

/** Shows that errors are seen; compiled with the others, because a second program would take as long again. */
const BROKEN: Page = {
  path: 'broken.md',
  text: '<!-- setup: guard -->\n\n```ts\n\nguard.acquire({});\n```',
};
let errors: ReadonlyMap<string, readonly string[]>;
beforeAll(() => {
  errors = typeErrors([...samples, ...samplesOf(BROKEN).samples]);
}, 120_000);

describe('samples of the documentation', () => {
  it('mark themselves with what the tests know', () => {
    expect(found.flatMap((page) => page.problems)).toEqual([]);
  });

  it.each(samples.map((sample) => [sample.name]))('%s compiles', (name) => {
    expect(errors.get(name)).toEqual([]);
  });

  it.each(samples.filter((sample) => sample.runs).map((sample) => [sample.name, sample] as const))(
    '%s runs and prints what it says',
    async (_, sample) => {
      const printed = await run(sample, moduleOf);
      if (sample.prints !== undefined) expect(printed).toBe(sample.prints);
    },
  );
});

describe('the first example of the README', () => {
  it('settles once, however often it is started', async () => {
    const example = samples.find(({ name }) => name.startsWith('README.md:'))!;
    expect(await run(example, moduleOf)).toBe(example.prints);
    expect(await run(example, moduleOf)).toBe('skipped: completed\n');
  });
});

describe('the marks of a sample', () => {
  it.each([
    ['a language that is not compiled', '```typescript\n1;\n```'],
    ['no language', '```\n1;\n```'],
    ['a way out without a reason', '<!-- not compiled: -->\n\n```ts\n1;\n```'],
    ['an unknown comment', '<!-- setup guard -->\n\n```ts\n1;\n```'],
    ['a setup that is not used', '<!-- setup: guard -->\n\n```ts\n1;\n```'],
    ['output of nothing', '<!-- prints -->\n\n```text\n1\n```'],
  ])('show %s', (_, text) => {
    expect(samplesOf(page(text)).problems).toHaveLength(1);
  });

  it('lead to an error of the compiler on its line', () => {
    expect(errors.get(`${BROKEN.path}:3`)).toEqual([expect.stringMatching(/^line 2 of the block: /)]);
  });

  it('say what a sample prints', async () => {
    const text =
      "<!-- run -->\n\n```ts\nawait 0;\nconsole.log('one', 2n);\n```\n\n<!-- prints -->\n\n```text\none 2n\n```";
    const [sample] = samplesOf(page(text)).samples;
    expect(await run(sample!, moduleOf)).toBe(sample!.prints);
  });
});

function page(text: string): Page {
  return { path: 'page.md', text };
}

function moduleOf(name: string): unknown {
  if (name in MODULES) return MODULES[name];
  throw new Error(`a sample that runs imports ${name}: add it to the modules of test/docs/samples.spec.ts`);
}
