// Builds every package twice: ESM into dist/esm, CommonJS into dist/cjs.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolders, root } from './lib/repo.mjs';
import { runNodeTool } from './lib/run.mjs';

const { code } = await runNodeTool('typescript/bin/tsc', ['-b', 'tsconfig.json', 'tsconfig.cjs.json'], {
  cwd: root,
});
if (code !== 0) process.exit(code);

// The packages are "type": "module"; without this file Node would read dist/cjs/*.js as ESM.
for (const folder of packageFolders()) {
  const cjs = join(folder, 'dist', 'cjs');
  if (!existsSync(cjs)) mkdirSync(cjs, { recursive: true });
  writeFileSync(join(cjs, 'package.json'), '{"type":"commonjs"}\n');
}
