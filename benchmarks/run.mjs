// `npm run bench`: scenarios on backends, each backend in a process of its own, and what became of them. See README.md.
import { writeFileSync } from 'node:fs';
import { compare } from './src/report/compare.mjs';
import { htmlOf } from './src/report/html.mjs';
import { machine, versions } from './src/report/machine.mjs';
import { Progress } from './src/report/progress.mjs';
import { printScenario } from './src/report/tables.mjs';
import { printSummary } from './src/report/summary.mjs';
import { printTargets } from './src/report/targets.mjs';
import { readReport } from './src/report/read.mjs';
import { hasPeers, installPeers } from './src/backends/peers.mjs';
import { optionsOrEnd } from './src/options.mjs';
import { planOf } from './src/plan.mjs';
import { runStage } from './src/run-stage.mjs';
import { faultsIn } from './src/rows.mjs';

const options = optionsOrEnd(process.argv.slice(2));
const { quick, seed, contenders } = options;
const { old, plan } = await orEnd(async () => ({
  old: options.compare === undefined ? undefined : readReport(options.compare),
  plan: await planOf(options),
}));
if (hasPeers(contenders)) await installPeers();

const report = {
  machine: machine(),
  versions: versions(),
  seed,
  quick,
  rows: [],
  series: [],
  notes: [],
  failures: [],
};
const progress = new Progress(plan.reduce((sum, { expectedMs }) => sum + expectedMs, 0));
for (const stage of plan) {
  await runStage(stage, { quick, seed, report, progress, contenders });
  progress.clear();
  for (const scenario of stage.scenarios) printScenario(report, { backend: stage.backend, scenario });
}
progress.end();
printTargets(report);
printSummary(report);
for (const note of report.notes) console.log(`note: ${note}`);
const faults = [...report.failures, ...faultsIn(report)];
for (const fault of faults) console.error(fault);
if (old !== undefined) compare(old, report);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report)}\n`);
if (options.html !== undefined) writeFileSync(options.html, htmlOf(report));
console.log(`${report.rows.length} rows, ${(progress.elapsedMs / 1_000).toFixed(0)} s`);
process.exitCode = faults.length > 0 || guardFailed(report) ? 1 : 0;

/** What a peer does wrong is a result; what Guard does wrong is a failure. */
function guardFailed({ rows }) {
  const wrong = rows.filter(
    ({ contender, metric, max }) => contender.startsWith('guard') && metric === 'violations' && max > 0,
  );
  for (const { scenario, backend, params, max } of wrong)
    console.error(`guard broke a promise ${max} times: ${scenario}, ${backend}, ${JSON.stringify(params)}`);
  return wrong.length > 0;
}

/** Wrong wishes are said in a line, without a stack. */
async function orEnd(read) {
  try {
    return await read();
  } catch (error) {
    console.error(error.message);
    process.exit(2);
  }
}
