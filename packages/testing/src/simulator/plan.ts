/**
 * What one seed stands for. Before the first turn the seed draws how long leases are, how many keys and workers there
 * are, and which kinds of fault this simulation knows at all: a storm of everything hides what a single kind of fault
 * would show.
 */
import { invalidArgument } from '@guard/core';
import { checkFlag, requireMethods, requireOneOf, requireOptions, requireWhole } from '../argument.js';
import type { SeededRandom } from '../clock/seeded-random.js';
import { chance } from './chance.js';

/** Kinds of fault. */
export const SIMULATED_FAULTS = [
  /** Requests and replies are lost, rejected, or fail one by one. */
  'loss',
  /** Requests and replies take up to several leases. */
  'delay',
  /** Requests are executed twice, or long after they were given up. */
  'repeat',
  /** Notices are lost, late, or come twice. */
  'notices',
  /** One node is cut off: nothing is executed, nobody answers. */
  'cut',
  /** The backend is away for everybody, and says so. */
  'outage',
  /** The backend starts anew: streams end, and tickets may be gone. */
  'restart',
  /** Processes are stopped and go on. */
  'pause',
  /** Processes are killed, and others started. */
  'crash',
  /** Guards are closed, and others made. */
  'close',
  /** Wall clocks of nodes are set, forward and back. */
  'wall-step',
  /** Machines sleep: monotonic clocks stand still. */
  'suspend',
  /** Clocks run at speeds that differ by up to one per cent. */
  'drift',
  /** The backend's wall clock is set, forward and back. */
  'backend-step',
  /** The backend forgets every lock and its counter; state stays. */
  'data-loss',
] as const;

/** A kind of fault. */
export type SimulatedFault = (typeof SIMULATED_FAULTS)[number];

/** What a caller of `simulate` may choose. */
export interface PlanOptions {
  /** How many nodes. Default 3. */
  readonly nodes?: number;
  /** How many turns under faults; then the faults end and everything has to settle. Default 300. */
  readonly steps?: number;
  /** Kinds of fault that may happen; each seed draws some of them. Default: all. */
  readonly faults?: readonly SimulatedFault[];
  /**
   * `true`: the backend's counter may be lost *and* its clock step back, which S2 assumes never to fall together. Then
   * only what must hold nevertheless is checked. Default `false`.
   */
  readonly beyondAssumptions?: boolean;
  /**
   * `true`: some nodes live beside the backend and are answered at once, without a network; the others are not.
   * Default: in every third seed.
   */
  readonly atOnce?: boolean;
  /** `true`: where there are single runs, one of the tasks has a schedule. Default: in every fourth seed. */
  readonly schedules?: boolean;
}

/** Refuses options that no plan can be drawn from; those of `simulate` itself are among them. */
export function checkPlan(options: PlanOptions & { readonly seed: number; readonly core?: object }): void {
  requireOptions('options', options, ['seed', 'core', ...FLAGS, 'nodes', 'steps', 'faults']);
  requireWhole('options.seed', options.seed, -Infinity);
  if (options.nodes !== undefined) requireWhole('options.nodes', options.nodes, 1, MAX_NODES);
  if (options.steps !== undefined) requireWhole('options.steps', options.steps, 0);
  for (const flag of FLAGS) checkFlag(`options.${flag}`, options[flag]);
  if (options.core !== undefined) requireMethods('options.core', options.core, 'a core', CORE);
  const { faults = [] } = options;
  if (!Array.isArray(faults)) throw invalidArgument('options.faults', faults, 'must be an array of faults');
  for (const fault of faults as readonly unknown[]) requireOneOf('options.faults', fault, SIMULATED_FAULTS);
}

const FLAGS = ['beyondAssumptions', 'atOnce', 'schedules'] as const;
const CORE = ['createGuard', 'kvRuns', 'memoryLocks', 'memoryState'];
const MAX_NODES = 100;

/** What a seed decided. */
export interface SeedPlan {
  readonly nodes: number;
  readonly steps: number;
  readonly faults: ReadonlySet<SimulatedFault>;
  readonly beyondAssumptions: boolean;
  /** Whether some nodes are answered at once. */
  readonly atOnce: boolean;
  /** The shortest lease; every claim asks for a little more, each for another number. */
  readonly ttlMs: number;
  readonly keys: readonly string[];
  readonly workers: number;
  /** Whether there are single runs. */
  readonly runs: boolean;
  /** Whether a task has a schedule, beside the runs that are called. */
  readonly schedules: boolean;
  /** The period of that schedule. */
  readonly periodMs: number;
  /** How often faults are planned, in leases. */
  readonly calmTtls: number;
}

/** From a notice's 300 ms to leases that are longer than a ticket ever lives. */
const TTLS_MS = [300, 1_000, 4_000, 12_000, 20_000] as const;

/** Draws the plan of a seed. */
export function drawPlan(random: SeededRandom, options: PlanOptions): SeedPlan {
  const beyondAssumptions = options.beyondAssumptions ?? false;
  const share = random.pick([0.25, 0.5, 0.75, 1] as const);
  const faults = new Set<SimulatedFault>();
  for (const fault of options.faults ?? SIMULATED_FAULTS) {
    if (random.fraction() < (fault === 'data-loss' ? share / 3 : share)) faults.add(fault);
  }
  if (beyondAssumptions) faults.add('data-loss').add('backend-step');
  else if (faults.has('data-loss')) faults.delete('backend-step');
  const keys = ['k0', 'k1', 'k2'].slice(0, random.integer(1, 3));
  const drawn = {
    nodes: options.nodes ?? 3,
    steps: options.steps ?? 300,
    faults,
    beyondAssumptions,
    // Not drawn, so that a seed without it is the same play as if there were no such nodes.
    atOnce: options.atOnce ?? random.seed % 3 === 0,
    ttlMs: random.pick(TTLS_MS),
    keys,
    workers: random.integer(1, 3),
    runs: chance(random, 0.5),
    calmTtls: random.pick([0.3, 1, 3] as const),
  };
  // Not drawn either.
  const schedules = drawn.runs && (options.schedules ?? random.seed % 4 === 1);
  return { ...drawn, schedules, periodMs: 2 * drawn.ttlMs };
}
