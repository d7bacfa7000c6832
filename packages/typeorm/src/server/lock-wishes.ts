/** The operations of the lock port as the statement `settle` takes them, and what it leaves of them as answers. */
import type {
  Claim,
  ClaimAnswer,
  Holder,
  LockInfo,
  Release,
  ReleaseAnswer,
  Renewal,
  RenewAnswer,
} from '@guard/core';
import { count, integer, text, textOrNull, type Row } from '../row.js';

/** One object of the statement's parameter; see there. */
export type Wish = Readonly<Record<string, string | number | boolean>>;

/** What the statement left in a row. `o`: the row was made in this step, so nobody had the key. */
interface Outcome {
  readonly o?: string;
  readonly g?: number;
  readonly s?: string;
  readonly a?: number;
  readonly f?: boolean | number;
  readonly h?: string;
  readonly e?: number;
}

const US_PER_MS = 1_000;

/** Milliseconds as the statements count time. */
export function microseconds(ms: number): number {
  return Math.ceil(ms * US_PER_MS);
}

/** A holder as it stands in a row. A text: `jsonb` refuses U+0000, which a label may hold. */
export function holderText(holder: Holder): string {
  return JSON.stringify(holder);
}

export function acquireWish(claim: Claim): Wish {
  return {
    ...{ o: 'a', k: claim.key, c: claim.id, s: claim.session, h: holderText(claim.holder), w: claim.wait },
    ...{ t: microseconds(claim.ttlMs), q: microseconds(claim.ticketTtlMs), f: String(claim.floor ?? 0n) },
  };
}

export function renewWish({ key, claim, token, ttlMs }: Renewal): Wish {
  return { o: 'n', k: key, c: claim, x: String(token), t: microseconds(ttlMs) };
}

export function releaseWish(release: Release): Wish {
  const { key, claim } = release;
  return release.cancel
    ? { o: 'c', k: key, c: claim, g: microseconds(release.tombstoneMs) }
    : { o: 'r', k: key, c: claim, x: String(release.token) };
}

/** Only settles what time alone brought about. */
export function lookWish(key: string): Wish {
  return { o: 's', k: key };
}

/** What became of a claim. */
export function claimAnswer(row: Row): ClaimAnswer {
  const { o, s, a, f, h, e } = outcome(row);
  const token = integer(row, 'token');
  switch (o === undefined ? s : 'g') {
    case 'g':
      return { status: 'granted', token };
    case 'q':
      return { status: 'queued', minted: token, ahead: a ?? 0, fresh: Boolean(f) };
    case 'b':
      return { status: 'busy', holder: JSON.parse(h ?? '{}') as Holder, expiresInMs: milliseconds(e ?? 0) };
    case 'd':
      return { status: 'cancelled' };
    default:
      return strange(row);
  }
}

/** What became of a renewal. */
export function renewAnswer(row: Row): RenewAnswer {
  return { status: outcome(row).s === 'n' ? 'renewed' : 'lost' };
}

/** What became of a release or a cancel. */
export function releaseAnswer(row: Row): ReleaseAnswer {
  const { o, s, g = 0 } = outcome(row);
  const released = o === undefined ? s === 'r' : g > 0;
  return { status: released ? 'released' : 'lost' };
}

/** What a row tells of a lock. */
export function lockInfo(row: Row): LockInfo {
  const key = text(row, 'key');
  if (row['token'] === null) return { key, held: false, token: 0n, waiting: 0 };
  const token = integer(row, 'token');
  if (row['left_us'] === null || integer(row, 'left_us') <= 0n)
    return { key, held: false, token, waiting: 0 };
  const lease = { key, claim: text(row, 'claim'), token, session: text(row, 'session') };
  return {
    ...{ key, held: true, token, lease, holder: JSON.parse(text(row, 'holder')) as Holder },
    ...{ expiresInMs: milliseconds(count(row, 'left_us')), waiting: count(row, 'waiting') },
  };
}

/** Whether time has ended a lease that somebody waits for, so that a look has to settle it first. */
export function isToBeSettled(row: Row): boolean {
  if (row['queued'] !== 't') return false;
  return row['left_us'] === null || integer(row, 'left_us') <= 0n;
}

function milliseconds(us: number): number {
  return Math.max(0, Math.ceil(us / US_PER_MS));
}

function outcome(row: Row): Outcome {
  return JSON.parse(textOrNull(row, 'answer') ?? '{}') as Outcome;
}

function strange(row: Row): never {
  throw new TypeError(`the database left ${String(row['answer'])} as the answer to an acquire`);
}
