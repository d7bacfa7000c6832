// `npm run test:nodes`: unit tests under every supported major version of Node, the oldest that is supported first.
// Only what needs no native module: the binding of SQLite is built for one version, and building it for each would take
// longer than everything else here. What needs servers, and the simulator's seeds, run under one version, by `npm test`;
// so do hours of schedules, by `npm run test:deep`.
// `--prepare` brings the versions and runs nothing; `--others` leaves out the major version that runs this, under which
// `npm test` has run the same tests. Whatever else is asked for is refused before anything begins.
import { parseArgs } from 'node:util';
import { runJest } from './lib/jest.mjs';
import { allInLanes } from './lib/lanes.mjs';
import { provideNodes } from './lib/nodes.mjs';

/** Runs the compiler and no code of ours: the same under every version. */
const COMPILED_ONLY = 'decorator/types';
const TESTS = [
  `packages/core/test/(?!${COMPILED_ONLY})`,
  ...['check', 'clock', 'contract', 'fault', 'process'].map((part) => `packages/testing/test/${part}/`),
];

const { prepare, others } = optionsOrEnd();
const nodes = await provideNodes();
const tested = nodes !== null && (prepare || (await allInLanes(wanted(nodes), test)));
process.exitCode = tested ? 0 : 1;

function optionsOrEnd() {
  const flag = { type: 'boolean', default: false };
  try {
    return parseArgs({ options: { prepare: flag, others: flag } }).values;
  } catch (error) {
    console.error(`${error.message}\n\nnpm run test:nodes [-- --prepare | --others]`);
    process.exit(2);
  }
}

function wanted(nodes) {
  return others ? nodes.filter(({ version }) => majorOf(version) !== majorOf(process.versions.node)) : nodes;
}

function majorOf(version) {
  return version.split('.')[0];
}

async function test({ version, program }) {
  const startedAt = performance.now();
  const { ok, passed, failed, skipped, output } = await runJest(
    { projects: ['virtual', 'unit'], patterns: TESTS, args: ['--runInBand'] },
    { node: program, capture: true },
  );
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (!ok) console.error(output);
  console.log(`node ${version}: ${passed} passed, ${failed} failed, ${skipped} skipped, ${seconds} s`);
  return ok;
}
