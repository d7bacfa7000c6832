/** What the log has of failures that nobody is told of. */
import { SingleRun } from '@guard/core';
import { GuardTestingModule } from '@guard/nestjs';
import { VirtualClock } from '@guard/testing';
import { Injectable, Scope } from '@nestjs/common';
import { closeAll, guardOf, KeptLogger, started } from './support/app.js';

afterEach(closeAll);

async function errorsAfter(provider: unknown, ms: number): Promise<KeptLogger> {
  const clock = new VirtualClock();
  const logger = new KeptLogger();
  await started({ imports: [GuardTestingModule.forRoot({ clock })], providers: [provider as never] }, logger);
  await clock.advance(ms);
  return logger;
}

test("[S8] a failed run of Guard's own timer is logged once, with task, run and cause", async () => {
  @Injectable()
  class Billing {
    @SingleRun({ every: '1m' }) async report(): Promise<void> {
      throw new Error('no paper');
    }
  }
  const { errors } = await errorsAfter(Billing, 90_000);
  expect(errors).toEqual([
    expect.stringMatching(
      /^task 'Billing.report', run '.*T.*Z' failed in attempt 1 \(cron\): Error: no paper$/,
    ),
  ]);
});

test('[S8] so is a constructor that throws, of a class with an instance for each run', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class Nightly {
    constructor() {
      throw new Error('no connection');
    }
    @SingleRun({ every: '1m' }) async tick(): Promise<void> {}
  }
  const { errors } = await errorsAfter(Nightly, 90_000);
  expect(errors).toEqual([expect.stringMatching(/'Nightly.tick'.*Error: no connection$/)]);
});

test('[S8] an attempt that is followed by another is a warning', async () => {
  @Injectable()
  class Billing {
    @SingleRun({ every: '1h', retry: { attempts: 2, backoff: '1s' } }) async report(): Promise<void> {
      throw new Error('no paper');
    }
  }
  const { errors, warned } = await errorsAfter(Billing, 3_610_000);
  expect(warned).toEqual([expect.stringMatching(/attempt 1 \(cron\): Error: no paper; it is tried again$/)]);
  expect(errors).toEqual([expect.stringMatching(/attempt 2 \(retry\): Error: no paper$/)]);
});

test('[S8] an alarm is logged: a task without success', async () => {
  @Injectable()
  class Billing {
    @SingleRun({ every: '1m', alarmAfter: '90s' }) async report(): Promise<void> {
      throw new Error('no paper');
    }
  }
  const { errors } = await errorsAfter(Billing, 240_000);
  const alarms = errors.filter((line) => String(line).startsWith('alarm'));
  expect(alarms).toEqual(["alarm: task 'Billing.report' has had no success ever"]);
});

test('the error of a call is its caller’s: nothing is logged', async () => {
  const clock = new VirtualClock();
  const logger = new KeptLogger();
  const app = await started({ imports: [GuardTestingModule.forRoot({ clock })] }, logger);
  const call = guardOf(app).run('by hand', async () => {
    throw new Error('no paper');
  });
  await expect(call).rejects.toThrow('no paper');
  expect(logger.errors).toEqual([]);
});
