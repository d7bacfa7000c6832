/** What the lock scripts answer, in the words of the port. Numbers may come as texts, as some clients are set to. */
import type { ClaimAnswer, Holder, LockInfo, Notice } from '@guard/core';
import { keyOf } from './names.js';

/** {token, held (1 or 0), ms left, session, claim, holder as JSON, live tickets}. */
export type InspectAnswer = readonly [
  token: string,
  held: number | string,
  msLeft: number | string,
  session: string,
  claim: string,
  holder: string,
  waiting: number | string,
];

/** The answers to acquires: one token for all of them, or a list. */
export function claimAnswers(value: unknown, count: number): readonly ClaimAnswer[] {
  if (typeof value !== 'string') return (value as readonly unknown[]).map(claimAnswer);
  return new Array<ClaimAnswer>(count).fill({ status: 'granted', token: BigInt(value) });
}

/** The answers to what is answered by 1 or 0: one for all of them, or a list. */
export function yesOrNo<A>(value: unknown, count: number, yes: A, no: A): readonly A[] {
  if (!Array.isArray(value)) return new Array<A>(count).fill(Number(value) === 1 ? yes : no);
  return (value as readonly unknown[]).map((one) => (Number(one) === 1 ? yes : no));
}

function claimAnswer(answer: unknown): ClaimAnswer {
  if (typeof answer === 'string') return { status: 'granted', token: BigInt(answer) };
  const [status, first, second, third] = answer as readonly [string, ...unknown[]];
  switch (status) {
    case 'q':
      return {
        status: 'queued',
        ahead: Number(first),
        minted: BigInt(second as string),
        fresh: Number(third) === 1,
      };
    case 'b':
      return { status: 'busy', holder: JSON.parse(first as string) as Holder, expiresInMs: Number(second) };
    case 'c':
      return { status: 'cancelled' };
    default:
      return { status: 'failed', cause: new Error(`Redis answered ${JSON.stringify(answer)} to an acquire`) };
  }
}

/** The answer to a question about one lock. */
export function infoOf(key: string, answer: InspectAnswer): LockInfo {
  const [token, held, expiresInMs, session, claim, holder, waiting] = answer;
  if (Number(held) !== 1) return { key, held: false, token: BigInt(token), waiting: 0 };
  return {
    key,
    held: true,
    token: BigInt(token),
    expiresInMs: Number(expiresInMs),
    waiting: Number(waiting),
    holder: JSON.parse(holder) as Holder,
    lease: { key, claim, token: BigInt(token), session },
  };
}

/** `g|token|claim|record`. Whatever else comes on the channel is not ours. */
export function noticeOf(message: string): Notice | undefined {
  const [type, token, claim, ...record] = message.split('|');
  if (type !== 'g' || token === undefined || claim === undefined || !/^\d{19}$/.test(token)) return undefined;
  const name = record.join('|');
  const key = keyOf(name.slice(name.indexOf('guard:{')));
  return key === undefined ? undefined : { type: 'granted', key, claim, token: BigInt(token) };
}

/** Tokens as the scripts write them: 19 digits, so that texts compare like numbers. */
export function digits(token: bigint): string {
  return token.toString().padStart(19, '0');
}

/** The floor of a claim that has none. */
export const NO_FLOOR = digits(0n);
