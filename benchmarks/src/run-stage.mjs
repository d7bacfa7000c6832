// Runs a stage in a process of its own, under the Node that its peers need, and gathers what it says.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { peerNode } from './backends/peers.mjs';

const PROGRAM = join(import.meta.dirname, 'stage-process.mjs');

/** Resolves when the stage is done; rejects with what went wrong in it. */
export function runStage({ backend, node = 0, scenarios }, { quick, seed, contender, report, progress }) {
  const own = Number(process.versions.node.split('.')[0]) >= node;
  const child = fork(PROGRAM, [], { execPath: own ? process.execPath : peerNode(), execArgv: [] });
  child.send({ backend, scenarios, quick, seed, only: contender });
  return new Promise((resolve, reject) => {
    let scenario;
    child.on('message', (said) => {
      if (said.scenario !== undefined) scenario = said.scenario;
      if (said.tick !== undefined) progress.tick(said.tick, `${backend} ${scenario}`);
      if (said.rows !== undefined) report.rows.push(...said.rows);
      if (said.series !== undefined) report.series.push(said.series);
      if (said.note !== undefined) report.notes.push(said.note);
      if (said.node !== undefined) report.versions[`node of ${backend}`] = said.node;
      if (said.error !== undefined) reject(new Error(`${backend}, ${scenario}: ${said.error}`));
      if (said.done === true) resolve();
    });
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      reject(new Error(`${backend}: the stage ended with ${signal ?? code}`)),
    );
  });
}
