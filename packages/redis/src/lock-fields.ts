/** What the lock scripts are told of an operation, as texts. */
import type { Holder, LeaseRef, Release } from '@guard/core';
import { digits } from './answers.js';

/** Milliseconds as the scripts take them out of a text. */
export function padded(ms: number): string {
  return String(ms).padStart(15, '0');
}

/** What a record says of a grant, and nobody else can. */
export function proofOf({ token, session, claim }: LeaseRef): string {
  return `${digits(token)}${session}|${claim}|`;
}

/** A release or a cancel, as the scripts are told of it. */
export function whatOf(release: Release): string {
  if (!release.cancel) return proofOf(release);
  return `c${padded(release.tombstoneMs)}${release.session}|${release.claim}|`;
}

/** Holders as texts. A guard shows one for all its locks that are for no run, so the last one is mostly the next. */
export class HolderTexts {
  private last: Holder | undefined;
  private text = '';

  of(holder: Holder): string {
    if (holder !== this.last) {
      this.last = holder;
      this.text = JSON.stringify(holder);
    }
    return this.text;
  }
}
