/** What too few replicas confirmed: it would not survive a fail-over, so nobody may rely on it. */
import {
  GuardError,
  type Claim,
  type ClaimAnswer,
  type Failed,
  type Release,
  type ReleaseAnswer,
} from '@guard/core';
import type { Acks } from './connection.js';

/** One step that too few replicas confirmed. */
export class Unconfirmed {
  private readonly cause: GuardError;

  constructor({ replicas, timeoutMs }: Acks, confirmed: number) {
    this.cause = new GuardError(
      'unavailable',
      `${confirmed} of ${replicas} replicas confirmed within ${timeoutMs} ms`,
    );
  }

  /** Nothing is known. */
  answer(): Failed {
    return { status: 'failed', cause: this.cause };
  }

  /**
   * Takes back what was granted in the step. Where that fails too, the same claim asking again is answered with the
   * grant that is still there, and asks the replicas anew.
   */
  async undone(
    claims: readonly Claim[],
    answers: readonly ClaimAnswer[],
    release: (taken: readonly Release[]) => Promise<readonly ReleaseAnswer[]>,
  ): Promise<readonly ClaimAnswer[]> {
    const granted = claims.filter((_, index) => answers[index]?.status === 'granted');
    if (granted.length === 0) return answers;
    const taken = granted.map(({ key, id, session }) => {
      return { cancel: true, key, claim: id, session, tombstoneMs: 0 } as const;
    });
    await release(taken).catch(() => undefined);
    return answers.map((answer) => (answer.status === 'granted' ? this.answer() : answer));
  }
}
