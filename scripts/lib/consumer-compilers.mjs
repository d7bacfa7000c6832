// The compilers that an application may use: TypeScript from the oldest supported version to the newest, and swc; each
// with legacy and with standard decorators. What they make is run afterwards.
import { transformFile } from '@swc/core';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.mjs';
import { atLeastOne } from './shown.mjs';

const VERSIONS = ['5.4', '5.9', '6.0', '7.0'];

/** What the consumer installs. */
export const COMPILERS = VERSIONS.map((version) => `ts${version}@npm:typescript@${version}`);

const FLAGS = [
  ...['--strict', '--skipLibCheck', 'false', '--noEmitOnError', '--module', 'nodenext', '--types', 'node'],
  ...['--moduleResolution', 'nodenext', '--target', 'es2022', '--lib', 'es2023,esnext.disposable'],
  ...['--exactOptionalPropertyTypes', '--rootDir', 'applications'],
];
const LEGACY = ['--experimentalDecorators', '--emitDecoratorMetadata'];

/**
 * `{ name, out, newest, compile }` of each way to compile the applications in TypeScript; `out` is below the project.
 */
export function compilations(folder) {
  return [true, false].flatMap((legacy) => [
    ...VERSIONS.map((version) => byTypeScript(folder, version, legacy)),
    bySwc(folder, legacy),
  ]);
}

function byTypeScript(folder, version, legacy) {
  const name = `TypeScript ${version}, ${legacy ? 'legacy' : 'standard'} decorators`;
  const out = join('out', name.replaceAll(/\W+/g, '-'));
  const args = [
    join('node_modules', `ts${version}`, 'bin', 'tsc'),
    ...FLAGS,
    ...(legacy ? LEGACY : []),
    ...['--outDir', out],
    // Types of functions and values do not depend on the mode: checking them once is enough.
    ...['decorators', ...(legacy ? [] : ['types'])].flatMap((application) => sourcesOf(folder, application)),
  ];
  const compile = () => run(process.execPath, args, { cwd: folder, capture: true });
  return { name, out, newest: version === VERSIONS.at(-1), compile };
}

/** It does not check types. */
function bySwc(folder, legacy) {
  const name = `swc, ${legacy ? 'legacy' : '2022-03'} decorators`;
  const out = join('out', name.replaceAll(/\W+/g, '-'));
  const compile = async () => {
    for (const file of sourcesOf(folder, 'decorators')) {
      const esm = file.endsWith('.mts');
      const { code } = await transformFile(join(folder, file), {
        swcrc: false,
        jsc: {
          target: 'es2022',
          keepClassNames: true,
          parser: { syntax: 'typescript', decorators: true },
          transform: legacy
            ? { legacyDecorator: true, decoratorMetadata: true }
            : { decoratorVersion: '2022-03' },
        },
        module: { type: esm ? 'es6' : 'commonjs' },
      });
      mkdirSync(join(folder, out, 'decorators'), { recursive: true });
      writeFileSync(join(folder, out, 'decorators', esm ? 'main.mjs' : 'main.cjs'), code);
    }
    return { code: 0, output: '' };
  };
  return { name, out, newest: true, compile };
}

function sourcesOf(folder, application) {
  const path = join('applications', application);
  return atLeastOne(`file in ${path}`, readdirSync(join(folder, path))).map((file) => join(path, file));
}
