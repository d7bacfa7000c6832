// One backend with its server and the scenarios on it, as a process of its own: under the Node that its peers need, and
// with nothing else in it that could cost time. What it finds goes to the process that started it.
import { setTimeout as pause } from 'node:timers/promises';
import { loadBackend } from './backends/load.mjs';
import { boundsOf } from './bounds.mjs';
import { Processes } from './processes.mjs';
import { faultsIn, rowsOf } from './rows.mjs';
import { SCENARIOS } from './scenarios.mjs';

const LOOK_EVERY_MS = 500;

/** What a scenario sees. */
export class Stage {
  rows = [];
  series = [];
  #say;

  constructor({ say, ...parts }) {
    Object.assign(this, parts);
    this.processes = new Processes({ backend: parts.backend.name, address: parts.server.address });
    this.#say = say;
  }

  /** Names of the contenders that take part in a scenario. */
  names(scenario, takesPart = () => true) {
    return namesOf(this, scenario, takesPart);
  }

  /** Keeps the samples of each contender as rows. */
  add(scenario, samples, params = {}) {
    for (const [contender, each] of Object.entries(samples)) {
      const rows = rowsOf({ scenario, backend: this.backend.name, contender, samples: each, params });
      this.rows.push(...rows);
      this.#say({ rows });
      const failure = each.find((sample) => sample.failure !== undefined)?.failure;
      if (failure !== undefined) this.note(`${contender}, ${scenario} ${JSON.stringify(params)}: ${failure}`);
    }
  }

  /** Keeps what a chart shows beyond rows. */
  draw(series) {
    this.#say({ series: { backend: this.backend.name, ...series } });
  }

  /** Something that a reader should know. */
  note(text) {
    this.#say({ note: `${this.backend.name}: ${text}` });
  }

  /** So much of the expected time is over. */
  tick(ms) {
    this.#say({ tick: ms });
  }
}

/**
 * Contenders whose definition lets them take part. `tuned`: scenarios in which other settings of a peer are
 * compared as well; `slow`: those that it plays in a full run alone, as all that are tuned.
 */
export function namesOf({ contenders, bounds }, scenario, takesPart = () => true) {
  return Object.keys(contenders).filter((name) => {
    const each = contenders[name];
    const isShort = bounds.quick && !each.asked;
    if (each.tuned && (isShort || !each.tuned.includes(scenario))) return false;
    if (isShort && each.slow?.includes(scenario)) return false;
    return (each.only?.includes(scenario) ?? true) && takesPart(each);
  });
}

/** Plays scenarios on a backend, and answers when all is closed again. */
export async function playStage({ backend: name, scenarios, quick, seed, only }, say) {
  const { backend, ...players } = await loadBackend(name, only);
  const bounds = boundsOf(quick, backend);
  const server = await backend.startServer();
  say({ versions: { [`node of ${name}`]: process.versions.node, [`server of ${name}`]: server.version } });
  const stage = new Stage({ backend, ...players, server, bounds, seed, say });
  let over = false;
  const pids = server.pids().filter((pid) => pid !== undefined);
  const death = deathOf(pids, () => over);
  death.catch(() => undefined);
  try {
    for (const scenario of scenarios) {
      say({ scenario });
      try {
        await Promise.race([SCENARIOS[scenario].play(stage), death]);
      } catch (error) {
        say({ failure: `${name}, ${scenario}: ${error?.stack ?? error}` });
        // The others are played all the same, where there is something to play them on.
        if (!pids.every(isAlive)) break;
        await stage.processes.end();
      }
    }
  } finally {
    over = true;
    await stage.processes.end();
    await server.close();
  }
  const faults = faultsIn({ machine: {}, versions: {}, seed, rows: stage.rows });
  if (faults.length > 0) throw new Error(faults.join('\n'));
}

/** Rejects when the server of the stage is gone: libraries wait for it without an end, and nobody needs to wait for them. */
async function deathOf(pids, isOver) {
  while (!isOver()) {
    if (!pids.every(isAlive)) throw new Error('the server died');
    await pause(LOOK_EVERY_MS, undefined, { ref: false });
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Of somebody else, and alive.
    return error.code === 'EPERM';
  }
}
