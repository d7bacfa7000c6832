/**
 * Code samples of the documentation: what the comments above a block ask for, and the text that is compiled.
 *
 * ```md
 * <!-- setup: guard, settle -->     names of test/docs/context.ts that the block uses without showing them
 * <!-- run -->                      the block is also carried out
 * <!-- prints -->                   above a ```text block: what the block before it prints, to the letter
 * <!-- not compiled: reason -->     the only way out, and readers of the source see it
 * ```
 */
import { blocksOf, type Block, type Page } from './markdown.js';

/** A block of TypeScript, ready to be compiled. */
export interface Sample {
  /** `README.md:12`, for titles and messages. */
  readonly name: string;
  /** What is compiled: one line of setup, then the block. */
  readonly source: string;
  readonly runs: boolean;
  /** What it must print, where the page says so. */
  readonly prints: string | undefined;
  /** Names that it takes from the context. */
  readonly setup: readonly string[];
}

/** What a page holds for the tests. */
export interface Samples {
  readonly samples: readonly Sample[];
  /** Rules that the page breaks. */
  readonly problems: readonly string[];
}

const LANGUAGES = ['ts', 'sh', 'sql', 'json', 'text', 'md'];
const MEANINGS = /^(setup: .+|run|prints|not compiled:.*)$/;

/** The samples of a page. */
export function samplesOf(page: Page): Samples {
  const samples: Sample[] = [];
  const problems: string[] = [];
  const blocks = blocksOf(page);
  for (const [index, block] of blocks.entries()) {
    problems.push(...problemsOf(block, blocks[index - 1]));
    if (block.language === 'ts' && reasonOf(block) === undefined) {
      samples.push(sampleOf(block, blocks[index + 1]));
    }
  }
  return { samples, problems };
}

function sampleOf(block: Block, next: Block | undefined): Sample {
  const setup = setupOf(block);
  const context = setup.length === 0 ? '' : `import { setup as $setup } from './context.js'; `;
  const names = setup.length === 0 ? '' : `const { ${setup.join(', ')} } = $setup();`;
  return {
    name: `${block.page}:${block.line}`,
    // Without an import or export it would be a script, and its names would be everybody's.
    source: `export {}; ${context}${names}\n${block.code}`,
    runs: block.comments.includes('run'),
    prints: next?.comments.includes('prints') ? next.code : undefined,
    setup,
  };
}

function problemsOf(block: Block, before: Block | undefined): string[] {
  const { comments, language } = block;
  const says = (problem: string): string => `${block.page}:${block.line}: ${problem}`;
  const problems: string[] = [];
  if (!LANGUAGES.includes(language)) {
    problems.push(says(`a block in '${language}'; use one of ${LANGUAGES.join(', ')}`));
  }
  for (const comment of comments) {
    if (!MEANINGS.test(comment)) problems.push(says(`the comment '${comment}' means nothing to the tests`));
  }
  if (reasonOf(block) === '') problems.push(says('not compiled, but no reason is given'));
  for (const name of setupOf(block)) {
    if (!new RegExp(`\\b${name}\\b`).test(block.code)) problems.push(says(`uses no '${name}' of the setup`));
  }
  if (comments.includes('run') && language !== 'ts') problems.push(says('only ts blocks can run'));
  if (comments.includes('prints') && !before?.comments.includes('run')) {
    problems.push(says('the block before it does not run, so it prints nothing'));
  }
  return problems;
}

function setupOf({ comments }: Block): string[] {
  return comments
    .filter((comment) => comment.startsWith('setup: '))
    .flatMap((comment) => comment.slice('setup: '.length).split(','))
    .map((name) => name.trim());
}

/** Why a block is not compiled; `undefined`: it is. */
function reasonOf({ comments }: Block): string | undefined {
  const comment = comments.find((one) => one.startsWith('not compiled:'));
  return comment?.slice('not compiled:'.length).trim();
}
