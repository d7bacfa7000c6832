/** What too few replicas confirmed: it would not survive a fail-over, so nobody may rely on it. */
import {
  GuardError,
  type Claim,
  type ClaimAnswer,
  type Failed,
  type LeaseRef,
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
   * Takes back what was granted in the step, by its tokens: an undo that comes late must not meet a newer grant of the
   * same claim. Where it fails, the claim asking again is answered with the grant that is still there, and asks the
   * replicas anew.
   */
  async undone(
    granted: readonly LeaseRef[],
    answers: readonly ClaimAnswer[],
    release: (taken: readonly LeaseRef[]) => Promise<readonly ReleaseAnswer[]>,
  ): Promise<readonly ClaimAnswer[]> {
    if (granted.length === 0) return answers;
    await release(granted).catch(() => undefined);
    return answers.map((answer) => (answer.status === 'granted' ? this.answer() : answer));
  }
}

/** Far more claims than ever ask again at the same time. */
const MAX_UNDONE = 10_000;

/**
 * Tokens that are being taken back. A claim that asks again while its grant is still there would be answered with the
 * very same token, and a late undo would then free what others believe in: so it asks for a larger one.
 */
export class UndoneTokens {
  private readonly tokens = new Map<string, bigint>();

  /** Claims as they are sent. */
  above(claims: readonly Claim[]): readonly Claim[] {
    if (this.tokens.size === 0) return claims;
    return claims.map((claim) => {
      const { floor = 0n } = claim;
      const undone = this.tokens.get(claim.id) ?? -1n;
      return undone < floor ? claim : { ...claim, floor: undone + 1n };
    });
  }

  add(undone: readonly LeaseRef[]): void {
    for (const { claim, token } of undone) {
      this.tokens.set(claim, token);
      if (this.tokens.size <= MAX_UNDONE) continue;
      for (const oldest of this.tokens.keys()) {
        this.tokens.delete(oldest);
        break;
      }
    }
  }

  /** The claims have grants that count, or ask no more. */
  forget(over: readonly { readonly claim: string }[]): void {
    if (this.tokens.size > 0) for (const { claim } of over) this.tokens.delete(claim);
  }
}

/** The grants among the answers to claims. */
export function grantsOf(claims: readonly Claim[], answers: readonly ClaimAnswer[]): readonly LeaseRef[] {
  return claims.flatMap(({ key, id: claim, session }, index): readonly LeaseRef[] => {
    const answer = answers[index];
    return answer?.status === 'granted' ? [{ key, claim, session, token: answer.token }] : [];
  });
}
