// What is to be played: one stage for each backend, with the scenarios that make sense there, and how long that takes.
import { boundsOf } from './bounds.mjs';
import { loadBackend } from './backends/load.mjs';
import { hasPeers } from './backends/peers.mjs';
import { SCENARIOS } from './scenarios.mjs';

export const BACKENDS = ['memory', 'sqlite', 'postgres', 'mariadb', 'redis', 'etcd', 'etcd-cluster'];
/** Until servers are up, and after the last scenario. */
const AROUND_MS = 1_500;

/** `{ backend, node, scenarios, expectedMs }` of each stage. */
export async function planOf({ backend, contender, only, quick }) {
  const scenarios = chosen('--only', only, Object.keys(SCENARIOS));
  const stages = [];
  for (const name of chosen('--backend', backend, BACKENDS)) {
    const loaded = await loadBackend(name, contender);
    const view = { ...loaded, bounds: boundsOf(quick, loaded.backend) };
    const fitting = scenarios.filter(
      (scenario) => (view.backend.scenarios?.includes(scenario) ?? true) && SCENARIOS[scenario].fits(view),
    );
    const expectedMs = fitting.reduce((sum, each) => sum + SCENARIOS[each].expectedMs(view), AROUND_MS);
    if (fitting.length > 0)
      stages.push({
        backend: name,
        node: hasPeers(contender) ? view.backend.node : undefined,
        scenarios: fitting,
        expectedMs,
      });
  }
  return stages;
}

function chosen(option, text, known) {
  if (text === undefined) return known;
  const names = text.split(',');
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`${option} has no '${unknown}'; it has ${known.join(', ')}`);
  return names;
}
