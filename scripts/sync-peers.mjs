// Runs inside `lerna version`. Lerna raises dependencies and devDependencies on sibling packages but leaves
// peerDependencies alone; without this a release would ask for the previous version of its sibling.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolders, readJson, root } from './lib/repo.mjs';
import { run } from './lib/run.mjs';

const { version } = readJson(join(root, 'lerna.json'));

for (const folder of packageFolders()) {
  const file = join(folder, 'package.json');
  const manifest = readJson(file);
  const siblings = Object.keys(manifest.peerDependencies ?? {}).filter((name) => name.startsWith('@guard/'));
  if (siblings.length === 0) continue;
  for (const name of siblings) manifest.peerDependencies[name] = `^${version}`;
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
}

await must('npm', ['install', '--package-lock-only', '--ignore-scripts']);
await must('git', ['add', 'packages/*/package.json', 'package-lock.json']);

async function must(command, args) {
  const { code } = await run(command, args);
  if (code !== 0) process.exit(code);
}
