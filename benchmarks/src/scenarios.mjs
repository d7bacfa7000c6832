// The scenarios by name, in the order in which they are played (`SCENARIO_NAMES` of options.mjs). Each has `fits(view)`, whether it makes sense on a
// backend; `expectedMs(view)`, for the progress bar; and `play(stage)`.
import { contention } from './scenarios/contention.mjs';
import { expiry } from './scenarios/expiry.mjs';
import { hold } from './scenarios/hold.mjs';
import { run } from './scenarios/run.mjs';
import { start } from './scenarios/start.mjs';
import { throughput } from './scenarios/throughput.mjs';
import { uncontended } from './scenarios/uncontended.mjs';

export const SCENARIOS = { uncontended, throughput, contention, expiry, hold, run, start };
