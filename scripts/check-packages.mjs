// Looks at every package as it would be published: publint reads its manifest and files, attw its types in each
// way of importing. Needs a build.
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { packageFolders } from './lib/repo.mjs';
import { runNodeTool } from './lib/run.mjs';

let failed = false;

for (const folder of packageFolders()) {
  const name = basename(folder);
  if (!existsSync(join(folder, 'dist', 'cjs', 'package.json'))) {
    console.error(`${name}: not built; run npm run build`);
    failed = true;
    continue;
  }
  await check(name, 'publint/src/cli.js', ['--strict'], folder);
  await check(name, '@arethetypeswrong/cli/dist/index.js', ['--pack', '.', '--no-emoji'], folder);
}

process.exitCode = failed ? 1 : 0;

async function check(name, tool, args, cwd) {
  const { code, output } = await runNodeTool(tool, args, { cwd, capture: true });
  console.log(`${name}: ${tool.split('/dist/')[0].split('/src/')[0]} ${code === 0 ? 'ok' : 'FAILED'}`);
  if (code === 0) return;
  console.log(output);
  failed = true;
}
