/** Tells its clocks whenever it is asked. */
import type { WorkerScope } from '@guard/testing';
import { systemClock } from '@guard/core';

export default async function clocks({ tell, hear }: WorkerScope): Promise<void> {
  for (let order = await hear(); order !== 'end'; order = await hear()) {
    await tell({
      wallMs: Date.now(),
      newMs: new Date().getTime(),
      text: Date(),
      byConstructor: new (new Date(0).constructor as DateConstructor)().getTime(),
      guardMs: systemClock.now().wallMs,
      fixed: new Date(1_000).toISOString(),
      isDate: new Date() instanceof Date,
      machineMs: Number(process.hrtime.bigint()) / 1e6,
    });
  }
}
