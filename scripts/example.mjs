// `npm run example -- NAME`: one of the folders in `examples`, from a fresh clone to its end, with one command.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeReady } from './lib/ready.mjs';
import { root } from './lib/repo.mjs';
import { run } from './lib/run.mjs';

const [name = '', ...args] = process.argv.slice(2);
const names = readdirSync(join(root, 'examples'));
if (!names.includes(name) || !existsSync(join(root, 'examples', name, 'src', 'main.ts'))) {
  console.error(`usage: npm run example -- ${names.join(' | ')}`);
  process.exitCode = 2;
} else process.exitCode = (await makeReady('the example')) ? await example() : 1;

async function example() {
  return (await run(process.execPath, [join(root, 'examples', name, 'dist', 'main.js'), ...args])).code;
}
