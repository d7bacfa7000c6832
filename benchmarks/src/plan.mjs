// What is to be played: one stage for each backend, with the scenarios that make sense there, and how long that takes.
import { boundsOf } from './bounds.mjs';
import { loadBackend } from './backends/load.mjs';
import { hasPeers } from './backends/peers.mjs';
import { SCENARIOS } from './scenarios.mjs';

/** Until servers are up, and after the last scenario. */
const AROUND_MS = 1_500;

/**
 * `{ backend, node, scenarios, expectedMs }` of each stage. The first three are lists of names, as `options.mjs` answers
 * them; without `contenders` all of them take part.
 */
export async function planOf({ backends, scenarios, contenders, quick }) {
  const stages = [];
  const known = new Set();
  for (const name of backends) {
    const loaded = await loadBackend(name, contenders);
    for (const each of loaded.known) known.add(each);
    const view = { ...loaded, bounds: boundsOf(quick, loaded.backend) };
    const fitting = scenarios.filter(
      (scenario) => (view.backend.scenarios?.includes(scenario) ?? true) && SCENARIOS[scenario].fits(view),
    );
    const expectedMs = fitting.reduce((sum, each) => sum + SCENARIOS[each].expectedMs(view), AROUND_MS);
    if (fitting.length > 0)
      stages.push({
        backend: name,
        node: hasPeers(contenders) ? view.backend.node : undefined,
        scenarios: fitting,
        expectedMs,
      });
  }
  const strange = contenders?.find((each) => !known.has(each));
  if (strange !== undefined)
    throw new Error(
      `--contender: there is no '${strange}' on ${backends.join(', ')}; there are '${[...known].join("', '")}'`,
    );
  if (stages.length === 0)
    throw new Error(
      `nothing is played: no ${scenarios.join(', ')} on ${backends.join(', ')} with these contenders`,
    );
  return stages;
}
