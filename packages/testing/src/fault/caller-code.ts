/**
 * Functions that a test handed to a proxy. They are asked inside of events of sockets, where nobody catches what they
 * throw: it would end the process, with every other test in it. So it is kept here, and told where the test looks.
 */
import { invalidArgument, GuardError } from '@guard/core';

/** What the functions of one proxy did wrong. */
export class CallerCode {
  #failure: GuardError | undefined;

  /** The first that threw, or that gave an answer which is none. */
  get failure(): GuardError | undefined {
    return this.#failure;
  }

  /** What a function answers; undefined where it has failed. `argument` is its name for people. */
  ask<A>(
    argument: string,
    call: () => unknown,
    fits: (answer: unknown) => answer is A,
    what: string,
  ): A | undefined {
    try {
      const answer = call();
      if (fits(answer)) return answer;
      // Of an async function: what it rejects with would be nobody's.
      if (answer instanceof Promise) answer.catch(() => undefined);
      throw invalidArgument(argument, answer, `must answer ${what}`);
    } catch (error) {
      this.#failure ??= GuardError.is(error, 'invalid-argument') ? error : thrown(argument, error);
      return undefined;
    }
  }
}

function thrown(argument: string, cause: unknown): GuardError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new GuardError('invalid-argument', `${argument} threw: ${message}`, { cause });
}
