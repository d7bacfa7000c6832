/** One text of a service, compiled in every way that Nest applications are, and guarded alike in all of them. */
import { transformSync } from '@swc/core';
import * as core from '@guard/core';
import { GuardModule, GuardReport } from '@guard/nestjs';
import ts from 'typescript';
import { closeAll, started } from './support/app.js';

afterEach(closeAll);

const TEXT = `
import { currentLock, currentRun, Locked, SingleRun } from '@guard/core';
export class Billing {
  settled: string[] = [];
  @SingleRun({ name: 'settle', key: (day: string) => day, onDuplicate: 'result' })
  async settle(day: string): Promise<string> {
    this.settled.push(day);
    return 'settled ' + currentRun()!.key;
  }
  @Locked({ key: (id: string) => ['account', id] })
  async transfer(id: string): Promise<string> {
    return id + ' ' + typeof currentLock()!.token;
  }
}`;

interface Billing {
  readonly settled: string[];
  settle(day: string): Promise<string>;
  transfer(id: string): Promise<string>;
}

const byTsc = (options: ts.CompilerOptions): string =>
  ts.transpileModule(TEXT, {
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022, ...options },
  }).outputText;

const bySwc = (transform: object): string =>
  transformSync(TEXT, {
    swcrc: false,
    configFile: false,
    jsc: { target: 'es2022', parser: { syntax: 'typescript', decorators: true }, transform },
    module: { type: 'commonjs' },
  }).code;

const COMPILED: [string, () => string][] = [
  [
    'tsc, legacy decorators with metadata',
    () => byTsc({ experimentalDecorators: true, emitDecoratorMetadata: true }),
  ],
  ['tsc, standard decorators', () => byTsc({ experimentalDecorators: false })],
  ['tsc, standard decorators for older engines', () => byTsc({ target: ts.ScriptTarget.ES2017 })],
  ['swc, legacy decorators with metadata', () => bySwc({ legacyDecorator: true, decoratorMetadata: true })],
  ['swc, standard decorators', () => bySwc({ decoratorVersion: '2022-03' })],
];

test.each(COMPILED)('[V20] [S7] %s: found at boot, run once, locked', async (_, compile) => {
  const exported: { Billing?: new () => Billing } = {};
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the very text that a compiler wrote is what is tested
  const load = new Function('exports', 'require', compile()) as (into: object, load: unknown) => void;
  load(exported, (name: string) => (name === '@guard/core' ? core : jest.requireActual(name)));
  const type = exported.Billing!;
  const app = await started({
    imports: [GuardModule.forRoot({ locks: core.memoryLocks(), state: core.memoryState() })],
    providers: [type],
  });
  expect(app.get(GuardReport).lines()).toEqual([
    expect.stringContaining("Billing.settle · task 'settle'"),
    expect.stringContaining('Billing.transfer'),
  ]);
  const billing = app.get(type);
  expect(await Promise.all([billing.settle('monday'), billing.settle('tuesday')])).toEqual([
    'settled monday',
    'settled tuesday',
  ]);
  expect(await billing.settle('monday')).toBe('settled monday');
  expect(billing.settled).toEqual(['monday', 'tuesday']);
  expect(await billing.transfer('ada')).toBe('ada bigint');
});
