// `npm run test:consumers`: what is published is what is tested. Packs every package, installs the tarballs into a new
// project outside of this repository, and has small applications use them: compiled by every supported compiler, run
// under every supported version of Node. Needs a build.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { compilations } from './lib/consumer-compilers.mjs';
import { makeConsumer } from './lib/consumer-project.mjs';
import { allInLanes } from './lib/lanes.mjs';
import { nestConsumers, runNestConsumer } from './lib/nest-consumers.mjs';
import { provideNodes } from './lib/nodes.mjs';
import { run } from './lib/run.mjs';
import { toItsEnd } from './lib/shown.mjs';

/** Run under every version of Node. */
const APPLICATIONS = ['cjs/main.cjs', 'esm/main.mjs', 'both/one-process.cjs'];
/** They need a native module or a server, so they run under this version of Node alone. */
const ONLY_HERE = ['here/redis.mjs', 'here/sqlite.cjs'];
const DECORATED = ['decorators/main.cjs', 'decorators/main.mjs'];

const consumer = await makeConsumer();
try {
  process.exitCode = consumer !== null && (await consume(consumer)) ? 0 : 1;
} finally {
  if (consumer !== null) rmSync(consumer.folder, { recursive: true, force: true });
}

async function consume({ folder, specifiers }) {
  const others = await provideNodes();
  if (others === null) return false;
  const compiled = compilations(folder);
  const checked = await allInLanes(compiled, async ({ name, compile }) => report(name, await compile()));
  const here = { version: process.versions.node, program: process.execPath };
  const decorated = (some) => some.flatMap(({ out }) => DECORATED.map((file) => join(out, file)));
  const applications = APPLICATIONS.map((file) => join('applications', file));
  const onEvery = [...applications, ...decorated(compiled.filter(({ newest }) => newest))];
  const onThis = [
    ...applications,
    ...decorated(compiled),
    ...ONLY_HERE.map((file) => join('applications', file)),
  ];
  const runs = [here, ...others].flatMap((node) => [
    { node, args: ['applications/both/every-export.cjs', ...specifiers] },
    ...(node === here ? onThis : onEvery).map((file) => ({ node, args: [file] })),
  ]);
  const ran = await allInLanes(runs, async ({ args, node }) => {
    const flags = ['--unhandled-rejections=strict', '--throw-deprecation'];
    const answer = toItsEnd(await run(node.program, [...flags, ...args], { cwd: folder, capture: true }));
    return report(`node ${node.version}: ${args[0]}`, answer);
  });
  const inNest = await allInLanes(nestConsumers(), async (name) =>
    report(name, await runNestConsumer(name, folder)),
  );
  return checked && ran && inNest;
}

function report(what, { code, output }) {
  console.log(`${what}: ${code === 0 ? 'ok' : `FAILED\n${output}`}`);
  return code === 0;
}
