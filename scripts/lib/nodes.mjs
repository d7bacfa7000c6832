// Other versions of Node, installed from the lockfile of test/nodes. Outside the workspaces: `npm ci` of the repository
// does not bring them.
import { join } from 'node:path';
import { readJson, root } from './repo.mjs';
import { run } from './run.mjs';
import { atLeastOne } from './shown.mjs';

const folder = join(root, 'test', 'nodes');

/** `{ version, program }` of each, the oldest first; null where they could not be installed. */
export async function provideNodes() {
  const wanted = Object.entries(readJson(join(folder, 'package.json')).dependencies ?? {});
  const nodes = atLeastOne('version of Node in test/nodes/package.json', wanted).map(([alias, version]) => ({
    version: version.slice('npm:node@'.length),
    program: join(folder, 'node_modules', alias, 'bin', 'node'),
  }));
  if (await allAnswer(nodes)) return nodes;
  console.log(`npm ci in test/nodes (node ${nodes.map(({ version }) => version).join(', ')})`);
  const { code } = await run('npm', ['ci', '--strict-allow-scripts'], { cwd: folder });
  return code === 0 && (await allAnswer(nodes)) ? nodes : null;
}

async function allAnswer(nodes) {
  const answers = nodes.map(({ program }) => run(program, ['--version'], { capture: true }));
  const outputs = (await Promise.all(answers)).map(({ output }) => output.trim());
  return nodes.every(({ version }, index) => outputs[index] === `v${version}`);
}
