/** The types of the decorators in both modes of the compiler: what is accepted, and what is refused. */
import ts from 'typescript';

const FILE = require.resolve('./accepted.ts');

/** The second program takes over what the first one has read. */
let before: ts.Program | undefined;

function errorsOf(legacy: boolean): string[] {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.es2024.string.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    customConditions: ['@guard/source'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: true,
    experimentalDecorators: legacy,
    emitDecoratorMetadata: legacy,
  };
  const program = ts.createProgram({ rootNames: [FILE], options, ...(before && { oldProgram: before }) });
  before = program;
  const source = program.getSourceFile(FILE);
  return ts.getPreEmitDiagnostics(program, source).map(({ start = 0, messageText }) => {
    const line = (source?.getLineAndCharacterOfPosition(start).line ?? 0) + 1;
    return `${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}

describe('[B116] [B123] the types of the decorators', () => {
  test.each([
    ['legacy', true],
    ['standard', false],
  ] as const)(
    'say the same in %s mode',
    (_mode, legacy) => {
      expect(errorsOf(legacy)).toEqual([]);
    },
    60_000,
  );
});
