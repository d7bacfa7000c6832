/** Started nodes with a schedule over one store, on a virtual clock; and a log of what ran, where and when. */
import type { Explanation, GuardOptions, Run, TaskOptions } from '@guard/core';
import type { VirtualClock } from '@guard/testing';
import { type Process, Stage } from '../runs/stage.js';

/** What one start of a run was. */
export interface Started {
  readonly node: string;
  readonly key: string;
  readonly trigger: string;
  /** Seconds after the stage's noon, by the true clock. */
  readonly atS: number;
}

/** First of January 2026, 00:00 UTC: where the stage's clock starts. */
export const START_MS = Date.UTC(2026, 0, 1);

/** Short leases, so that a takeover takes seconds. */
export const SWEEP = { sweepInterval: '2s', defaults: { ttl: '6s' } } satisfies Partial<GuardOptions>;

/** A schedule with an instant every minute. */
export const MINUTES = { cron: '* * * * *' } as const;

/** A text that has this in it. */
export const saying = (text: string): string => expect.stringContaining(text) as string;

/** A stage for schedules. */
export class ScheduleStage extends Stage {
  readonly log: Started[] = [];

  /** A started node that knows the task `t`. */
  async node(
    options: TaskOptions<void>,
    more: {
      readonly work?: (run: Run) => unknown;
      readonly guard?: Partial<GuardOptions>;
      readonly start?: boolean;
    } = {},
  ): Promise<Process> {
    const node = this.process({ ...SWEEP, ...more.guard });
    const label = `node-${this.processes.length}`;
    node.guard.task('t', options, (run) => {
      const { wallMs } = this.clock.now();
      this.log.push({
        node: label,
        key: run.key,
        trigger: run.trigger,
        atS: Math.round(wallMs - START_MS) / 1_000,
      });
      return more.work?.(run);
    });
    if (more.start !== false) await this.start(node);
    return node;
  }

  async start(node: Process): Promise<void> {
    const started = node.guard.start();
    await this.clock.runUntil(started);
  }

  /** An instant, so many seconds after the start of the stage. */
  at(seconds: number): Date {
    return new Date(START_MS + seconds * 1_000);
  }

  /** What a node says of an instant of the task `t`, so many seconds after the start of the stage. */
  async explained(node: Process, seconds: number): Promise<Explanation> {
    return this.clock.runUntil(node.guard.tasks.explain('t', this.at(seconds)));
  }

  /** The same as verdict and text. */
  async why(node: Process, seconds: number): Promise<readonly [Explanation['verdict'], string]> {
    const { verdict, text } = await this.explained(node, seconds);
    return [verdict, text];
  }

  /** The instants that were run, in seconds after the start of the stage, in the order of their runs. */
  instants(): number[] {
    return this.log.map(({ key }) => (Date.parse(key) - START_MS) / 1_000);
  }

  /** Records of the task by state: instants in seconds, or for summaries `from–to: count reason`. */
  async states(): Promise<Record<string, unknown[]>> {
    const found: Record<string, unknown[]> = {};
    for (const run of [...(await this.records())].reverse()) {
      const at = (ms: number): number => (ms - START_MS) / 1_000;
      // A pause ends when a node says so, and a node knows the time of the store to a millisecond only.
      const about = (ms: number): number => Math.round(at(ms));
      const name = run.state;
      const shown =
        run.state === 'expired' && run.summary !== undefined
          ? `${about(run.summary.fromMs)}–${about(run.summary.toMs)}: ${run.summary.count} ${run.reason}`
          : at(run.scheduledForMs ?? NaN);
      (found[name] ??= []).push(shown);
    }
    return found;
  }

  /** Everybody's events of one kind, by node. */
  told(event: string): { readonly node: number; readonly payload: unknown }[] {
    return this.processes.flatMap(({ told }, node) =>
      told.filter((one) => one.event === event).map(({ payload }) => ({ node: node + 1, payload })),
    );
  }
}

/** The clock of a machine that is wrong by so much, which can change. */
export function shifted(base: VirtualClock, offMs: number): VirtualClock & { offMs: number } {
  const clock = Object.create(base) as VirtualClock & { offMs: number };
  clock.offMs = offMs;
  clock.now = () => ({ monoMs: base.now().monoMs, wallMs: base.now().wallMs + clock.offMs });
  clock.setTimer = (run, delayMs, options) => base.setTimer(run, delayMs, options);
  clock.yield = (run) => base.yield(run);
  return clock;
}

/** Numbers from `first` to `last` in steps. */
export function range(first: number, last: number, step = 1): number[] {
  const numbers: number[] = [];
  for (let at = first; at <= last; at += step) numbers.push(at);
  return numbers;
}
