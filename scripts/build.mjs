// Builds every package twice: ESM into dist/esm, CommonJS into dist/cjs. The compiler checks the types once, in the first
// pass, for the sources are the same; with `--unchecked` not at all, where something else does it.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolders } from './lib/repo.mjs';
import { runNodeTool } from './lib/run.mjs';

const unchecked = process.argv.includes('--unchecked');
await compile('tsconfig.json', unchecked);
await compile('tsconfig.cjs.json', true);

// The packages are "type": "module"; without this file Node would read dist/cjs/*.js as ESM.
for (const folder of packageFolders()) {
  const cjs = join(folder, 'dist', 'cjs');
  if (!existsSync(cjs)) mkdirSync(cjs, { recursive: true });
  writeFileSync(join(cjs, 'package.json'), '{"type":"commonjs"}\n');
}

async function compile(config, withoutCheck) {
  const { code } = await runNodeTool('typescript/bin/tsc', [
    '-b',
    config,
    ...(withoutCheck ? ['--noCheck'] : []),
  ]);
  if (code !== 0) process.exit(code);
}
