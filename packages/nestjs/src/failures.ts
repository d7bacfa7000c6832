/**
 * What an application finds in its log without listening to events: failures that no caller is told of, and alarms.
 * A run that somebody called, or a timer of @nestjs/schedule, fails into their hands and is theirs to log.
 */
import type { Guard, GuardEvents } from '@guard/core';
import type { LoggerService } from '@nestjs/common';

/**
 * Logs them from now on, each event once.
 *
 * @param isCalled whether a timer of somebody else calls the task, and so gets its errors.
 */
export function logFailures(
  guard: Guard,
  logger: Pick<LoggerService, 'error' | 'warn'>,
  isCalled: (task: string) => boolean,
): void {
  guard.on('run-failed', (failed) => {
    const { task, trigger } = failed.run;
    if (trigger === 'call' || (trigger === 'cron' && isCalled(task))) return;
    if (failed.run.state === 'pending') logger.warn(failureText(failed));
    else logger.error(failureText(failed), stackOf(failed.error));
  });
  guard.on('alarm', (alarm) => {
    // Of a failure there is a line already, or its caller was told.
    if (alarm.reason !== 'failed') logger.error(alarmText(alarm));
  });
}

function failureText({ run, error }: GuardEvents['run-failed']): string {
  const next = run.state === 'pending' ? '; it is tried again' : '';
  return `task '${run.task}', run '${run.key}' failed in attempt ${run.attempt} (${run.trigger}): ${causeText(error, run)}${next}`;
}

function alarmText(alarm: GuardEvents['alarm']): string {
  if (alarm.run === undefined) {
    const last = alarm.lastSuccess === undefined ? 'ever' : `since ${alarm.lastSuccess.toISOString()}`;
    return `alarm: task '${alarm.task}' has had no success ${last}`;
  }
  const { task, key, lastFault } = alarm.run;
  const fault = lastFault === undefined ? '' : `: ${lastFault.name}: ${lastFault.message}`;
  return `alarm: task '${task}', run '${key}' is ${alarm.reason}${fault}`;
}

/** What another node left behind failed there: only its record tells why. */
function causeText(error: unknown, { lastFault }: GuardEvents['run-failed']['run']): string {
  if (error === undefined && lastFault !== undefined) return `${lastFault.name}: ${lastFault.message}`;
  return String(error);
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}
