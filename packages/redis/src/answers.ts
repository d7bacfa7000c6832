/** What the lock scripts answer, in the words of the port. Numbers may come as texts, as some clients are set to. */
import type { ClaimAnswer, Failed, Holder, LockInfo, Notice } from '@guard/core';
import { keyOf } from './names.js';
import { listed, strangeAnswer } from './strange-answer.js';

/** {token, held (1 or 0), ms left, session, claim, holder as JSON, live tickets}. */
type InspectAnswer = readonly [
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
  if (isToken(value)) return new Array<ClaimAnswer>(count).fill({ status: 'granted', token: BigInt(value) });
  return listed(ACQUIRE, value, count).map(claimAnswer);
}

/** The answers to what is answered by 1 or 0: 1 for all of them, or a list. */
export function yesOrNo<A>(
  to: string,
  value: unknown,
  count: number,
  yes: A,
  no: A,
): readonly (A | Failed)[] {
  if (isNumber(value, 1)) return new Array<A>(count).fill(yes);
  return listed(to, value, count).map((one) => {
    if (isNumber(one, 1)) return yes;
    return isNumber(one, 0) ? no : { status: 'failed', cause: strangeAnswer(to, one) };
  });
}

const ACQUIRE = 'an acquire';

function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^\d{19}$/.test(value);
}

function isNumber(value: unknown, number: 0 | 1): boolean {
  return value === number || value === String(number);
}

function claimAnswer(answer: unknown): ClaimAnswer {
  if (isToken(answer)) return { status: 'granted', token: BigInt(answer) };
  const [status, first, second, third] = (Array.isArray(answer) ? answer : []) as readonly unknown[];
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
      return { status: 'failed', cause: strangeAnswer(ACQUIRE, answer) };
  }
}

/** The answers to questions about locks. */
export function infosOf(keys: readonly string[], value: unknown): readonly LockInfo[] {
  return listed(INSPECT, value, keys.length).map((answer, index) => infoOf(keys[index]!, answer));
}

const INSPECT = 'a question about locks';

function infoOf(key: string, answer: unknown): LockInfo {
  if (!Array.isArray(answer)) throw strangeAnswer(INSPECT, answer);
  const [token, held, expiresInMs, session, claim, holder, waiting] = answer as unknown as InspectAnswer;
  if (!isNumber(held, 1) && !isNumber(held, 0)) throw strangeAnswer(INSPECT, answer);
  if (isNumber(held, 0)) return { key, held: false, token: BigInt(token), waiting: 0 };
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
export function noticeOf(message: string): (Notice & { readonly type: 'granted' }) | undefined {
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
