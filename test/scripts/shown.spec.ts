/** That no script passes for what it did not do: lists that are empty, tests that are gone, programs that end too early. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const LIB = join(__dirname, '../../scripts/lib');

/** Calls a function of a script's library in a process of its own, and answers what came of it. */
async function call<A>(file: string, expression: string): Promise<A> {
  const url = pathToFileURL(join(LIB, file)).href;
  const program = `
    const lib = await import(${JSON.stringify(url)});
    const answer = await (async () => ${expression})().catch((error) => ({ threw: error.message }));
    console.log('\\n' + JSON.stringify(answer ?? null));`;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program]);
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as A;
}

const ran = [
  { path: '/r/packages/a/test/x.spec.ts', project: 'unit', passed: 2 },
  { path: '/r/packages/a/test/servers/y.spec.ts', project: 'servers', passed: 0 },
];

describe('A run of tests', () => {
  const missing = (asked: object, files: unknown = ran): Promise<string[]> =>
    call('shown.mjs', `lib.whatWasNotShown(${JSON.stringify(asked)}, ${JSON.stringify(files)})`);

  it('has shown what it was asked for where tests of each passed', async () => {
    const asked = { projects: ['unit'], patterns: ['a/test/(x|y)'], paths: ['packages/a/test/x.spec.ts'] };
    expect(await missing(asked)).toEqual([]);
  });

  it.each<[string, object]>([
    ["in the project 'servers'", { projects: ['unit', 'servers'] }],
    ["in the project 'smoke'", { projects: ['unit', 'smoke'] }],
    ["whose path matches 'b/test'", { patterns: ['a/test', 'b/test'] }],
    ['in packages/a/test/z.spec.ts', { paths: ['packages/a/test/x.spec.ts', 'packages/a/test/z.spec.ts'] }],
    ['in est/x.spec.ts', { paths: ['est/x.spec.ts'] }],
  ])('fails where no test passed %s', async (what, asked) => {
    expect(await missing(asked)).toEqual([
      `no test passed ${what}: its files are gone, or have another name`,
    ]);
  });

  it('fails where none passed at all', async () => {
    expect(await missing({}, [])).toEqual(['no test passed at all']);
  });

  it('is no success where one of its projects has no test of that path, though jest ends with 0', async () => {
    const asked = { projects: ['structure', 'smoke'], paths: ['test/structure/words.spec.ts'] };
    const { ok, passed, failed, output } = await call<Record<string, unknown>>(
      'jest.mjs',
      `lib.runJest(${JSON.stringify(asked)}, { capture: true })`,
    );
    expect({ ok, failed, passed: (passed as number) > 0 }).toEqual({ ok: false, failed: 0, passed: true });
    expect(output).toContain("no test passed in the project 'smoke'");
  });

  it('takes no text for a list', async () => {
    const { threw } = await call<{ threw: string }>('jest.mjs', "lib.runJestProjects('smoke')");
    expect(threw).toBe('projects is a list, not string');
  });
});

describe('A list of work', () => {
  it('is refused where it is empty', async () => {
    const { threw } = await call<{ threw: string }>('lanes.mjs', 'lib.allInLanes([], async () => true)');
    expect(threw).toBe('there is no item in a list of work: nothing would be done, and nothing shown');
  });

  it('is done where it is not', async () => {
    expect(await call('lanes.mjs', 'lib.allInLanes([1, 2], async (n) => n > 0)')).toBe(true);
    expect(await call('lanes.mjs', 'lib.allInLanes([1, 2], async (n) => n > 1)')).toBe(false);
  });
});

describe('A list of stages', () => {
  /** Whether a list of stages with these answers has failed, and what its table says. */
  const play = (...answers: string[]): Promise<{ failed: boolean; said: string }> =>
    call(
      'stages.mjs',
      `(async () => {
        const stages = new lib.Stages();
        const lines = [];
        console.log = (line) => lines.push(line);
        for (const answer of [${answers.join(', ')}]) await stages.run('one', async () => answer);
        stages.print();
        delete console.log;
        const { failed } = stages;
        process.stdout.write('\\n');
        console.log = (line) => process.stdout.write(line + '\\n');
        return { failed, said: lines.join('\\n') };
      })()`,
    );

  it('has failed where there was none, and where one answered nothing', async () => {
    expect((await play()).failed).toBe(true);
    expect((await play('true', 'undefined')).failed).toBe(true);
    expect((await play('true', '{}')).failed).toBe(true);
    expect((await play('true')).failed).toBe(false);
  });

  it('says below its table what was skipped, and why', async () => {
    const { failed, said } = await play('true', "{ skipped: 'no engine' }");
    expect(failed).toBe(false);
    expect(said).toMatch(/one +SKIPPED .*no engine/);
    expect(said).toContain('SKIPPED, so that nothing was shown of it: one (no engine)');
  });
});

describe('An application', () => {
  const end = (answer: object): Promise<{ code: number; output: string }> =>
    call('shown.mjs', `lib.toItsEnd(${JSON.stringify(answer)})`);

  it('has come to its end where its last line says so', async () => {
    const answer = { code: 0, output: 'x\ncame to its end\n' };
    expect(await end(answer)).toEqual(answer);
  });

  it.each(['', 'came to its end\nand then?\n'])('has failed where it ended with 0 and %p', async (output) => {
    const { code, output: said } = await end({ code: 0, output });
    expect(code).toBe(1);
    expect(said).toContain('something in it never settled');
  });

  it('has failed where it did not end with 0, whatever it says', async () => {
    const answer = { code: 2, output: 'came to its end\n' };
    expect(await end(answer)).toEqual(answer);
  });
});
