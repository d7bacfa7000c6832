// Runs a stage in a process of its own, under the Node that its peers need, and gathers what it says.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { peerNode } from './backends/peers.mjs';

/** Every play says something long before that; a stage that does not will not. */
const SILENCE_MS = 300_000;
const PROGRAM = join(import.meta.dirname, 'stage-process.mjs');

/** Resolves when the stage is done; what went wrong in it stands in the report. */
export function runStage({ backend, node = 0, scenarios }, { quick, seed, contenders, report, progress }) {
  const own = Number(process.versions.node.split('.')[0]) >= node;
  const child = fork(PROGRAM, [], { execPath: own ? process.execPath : peerNode(), execArgv: [] });
  child.send({ backend, scenarios, quick, seed, only: contenders });
  return new Promise((resolve) => {
    let scenario;
    let done = false;
    const fail = (text) => {
      report.failures.push(`${backend}: ${text}`);
      resolve();
    };
    const watch = setTimeout(() => {
      fail(`it said nothing for ${SILENCE_MS / 1_000} s, during ${scenario ?? 'the start of its server'}`);
      done = true;
      child.kill('SIGKILL');
    }, SILENCE_MS);
    child.on('message', (said) => {
      watch.refresh();
      if (said.scenario !== undefined) scenario = said.scenario;
      if (said.tick !== undefined) progress.tick(said.tick, `${backend} ${scenario}`);
      if (said.rows !== undefined) report.rows.push(...said.rows);
      if (said.series !== undefined) report.series.push(said.series);
      if (said.versions !== undefined) Object.assign(report.versions, said.versions);
      if (said.note !== undefined) report.notes.push(said.note);
      if (said.failure !== undefined) report.failures.push(said.failure);
      if (said.error !== undefined) fail(said.error);
      done ||= said.done === true || said.error !== undefined;
      if (said.done === true) resolve();
    });
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, signal) => {
      clearTimeout(watch);
      if (!done) fail(`its process ended with ${signal ?? code}`);
    });
  });
}
