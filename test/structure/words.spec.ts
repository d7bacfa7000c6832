import { filesUnder, type Source } from './support/source.js';

const CODE = ['packages', 'scripts', 'benchmarks', 'examples', 'test'];
const FORBIDDEN: readonly { pattern: RegExp; because: string }[] = [
  { pattern: /\b(TODO|FIXME|XXX)\b/, because: 'do it, or write an issue' },
  { pattern: /@ts-ignore/, because: 'use @ts-expect-error with a reason, or fix the type' },
  { pattern: /not implemented/i, because: 'leave out what does not exist' },
  {
    pattern: /(?<![\w.])\/(home|Users)\/[a-z]|[A-Z]:\\+Users\\/i,
    because:
      'it is there on one machine only; write a path from the root of the repository, or a temporary one',
  },
];

describe('words', () => {
  it('finds no unfinished work in the code', () => {
    const files = CODE.flatMap((folder) => filesUnder(folder, '.ts', '.mjs', '.cjs', '.lua', '.sql'));
    expect(files.length).toBeGreaterThan(0);
    const others = files.filter(({ path }) => path !== 'test/structure/words.spec.ts');
    expect(others.flatMap(forbiddenWords)).toEqual([]);
  });

  it.each(["'/home/alice/guard/x.ts'", "'/Users/alice/x'", String.raw`'C:\\Users\\alice'`])(
    'sees %s',
    (text) => expect(forbiddenWords({ path: 'sample.ts', text })).toHaveLength(1),
  );

  it.each(["'https://x.org/home/alice'", "'../home/alice'"])('accepts %s', (text) =>
    expect(forbiddenWords({ path: 'sample.ts', text })).toEqual([]),
  );

  it.each(['// TODO later', '// FIXME', '// XXX', '// @ts-ignore', "throw new Error('Not implemented')"])(
    'sees %s',
    (text) => expect(forbiddenWords({ path: 'sample.ts', text })).toHaveLength(1),
  );
});

function forbiddenWords({ path, text }: Source): string[] {
  return text.split('\n').flatMap((line, index) => {
    const found = FORBIDDEN.find(({ pattern }) => pattern.test(line));
    return found ? [`${path}:${index + 1}: ${line.trim()} (${found.because})`] : [];
  });
}
