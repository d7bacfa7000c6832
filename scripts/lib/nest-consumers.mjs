// Nest applications on the packed packages: each folder `test/consumers/nest*` with a package.json is a project with its
// own versions of Nest, and all of them are the application in `nest-app`. Compilers and Jest are those of this repository.
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readJson, root } from './repo.mjs';
import { run, runNodeTool } from './run.mjs';
import { atLeastOne, toItsEnd } from './shown.mjs';

const CONSUMERS = join(root, 'test', 'consumers');
const APPLICATION = join(CONSUMERS, 'nest-app');
const NEEDED = ['core', 'nestjs'];
const require = createRequire(import.meta.url);

/** Names of the projects. */
export function nestConsumers() {
  const names = readdirSync(CONSUMERS).filter(
    (name) => name.startsWith('nest') && existsSync(join(CONSUMERS, name, 'package.json')),
  );
  return atLeastOne(`project nest* in ${CONSUMERS}`, names);
}

/** Installs one of them with the tarballs of a folder, and runs it: `{ code, output }`. */
export async function runNestConsumer(name, tarballs) {
  const folder = mkdtempSync(join(tmpdir(), `guard-${name}-`));
  try {
    cpSync(join(CONSUMERS, name), folder, { recursive: true });
    cpSync(APPLICATION, folder, { recursive: true });
    const packed = readdirSync(tarballs).filter((file) =>
      NEEDED.some((one) => file.startsWith(`guard-${one}-`)),
    );
    const quiet = ['--silent', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
    const install = ['install', ...quiet, ...packed.map((file) => join(tarballs, file))];
    const installed = await run('npm', install, { cwd: folder, capture: true });
    if (installed.code !== 0) return installed;
    const isModule = readJson(join(folder, 'package.json')).type !== undefined;
    const compiled = await compile(folder, isModule);
    if (compiled.code !== 0) return compiled;
    if (!isModule) return await underJest(folder);
    const flags = ['--unhandled-rejections=strict', '--throw-deprecation'];
    return toItsEnd(await run(process.execPath, [...flags, 'out/main.js'], { cwd: folder, capture: true }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Checks the types of the whole application against the packed ones. Jest compiles for itself. */
function compile(folder, emits) {
  const types = join(root, 'node_modules', '@types');
  const compilerOptions = {
    ...{
      strict: true,
      skipLibCheck: true,
      target: 'es2022',
      lib: ['es2023', 'esnext.disposable'],
      types: ['node', 'jest'],
    },
    ...{ module: 'nodenext', moduleResolution: 'nodenext', esModuleInterop: true, typeRoots: [types] },
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true, exactOptionalPropertyTypes: true },
    ...(emits ? { rootDir: '.', outDir: 'out' } : { noEmit: true }),
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  return runNodeTool('typescript/bin/tsc', ['-p', 'tsconfig.json'], { cwd: folder, capture: true });
}

function underJest(folder) {
  const swc = {
    swcrc: false,
    jsc: {
      target: 'es2022',
      keepClassNames: true,
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
    module: { type: 'commonjs' },
  };
  const config = {
    rootDir: folder,
    testMatch: ['<rootDir>/jest-check.ts'],
    transform: { '^.+\\.ts$': [require.resolve('@swc/jest'), swc] },
  };
  const args = ['--config', JSON.stringify(config), '--ci'];
  return runNodeTool('jest/bin/jest.js', args, { cwd: folder, capture: true });
}
