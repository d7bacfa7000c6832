/**
 * Release and cancel, one or two steps each.
 *
 * The key is deleted only if it is the very one that was granted: by the revision that created it, or, where that is
 * not known, by the claim in its value. The oldest key that is left holds the lock from then on. Where the releaser
 * knows who that is, the notice for it goes along in the same step, under the lease of the key that is deleted: as
 * long as the key was there, so was its lease, and a put under a lease that is over would fail the whole transaction.
 */
import type { ICompare } from 'etcd3';
import { boundsOf } from '../lock-value.js';
import type { KeyRange } from '../names.js';
import type { Standing } from './acquire.js';
import {
  createdBy,
  nested,
  oldest,
  put,
  read,
  remove,
  take,
  valueBetween,
  writtenBy,
  type Step,
} from './txn.js';

/** How many waiting claims a releaser reads, and tells its successor of. */
const QUEUE_SHOWN = 16;

/** The key is this claim's: by its revision, or by its value. */
export function isOwn(name: Buffer, claim: string, created: bigint | undefined): ICompare[] {
  return created === undefined ? valueBetween(name, boundsOf(claim)) : [createdBy(name, created)];
}

/**
 * Answers: succeeded → the deleted key, where `isKnown` does not say that its revision is known; the oldest keys that
 * are left. Else there was nothing to delete.
 */
export function letGo(lock: KeyRange, name: Buffer, own: ICompare[], isKnown: boolean): Step {
  return { compare: own, success: [isKnown ? remove(name) : take(name), oldest(lock, QUEUE_SHOWN)] };
}

/**
 * Takes a key away that nobody wants: by no word of its claim, so not where anything was written to it since.
 *
 * Answers: succeeded → nothing of interest, the oldest keys that are left. Else → the key.
 */
export function clear(lock: KeyRange, name: Buffer, { created, modified }: Standing): Step {
  return {
    compare: [createdBy(name, created), writtenBy(name, modified)],
    success: [remove(name), oldest(lock, QUEUE_SHOWN)],
    failure: [read(name)],
  };
}

/** A notice that goes along with the release of a key whose revision is known. */
export interface Along {
  /** The key of the next claim, and the revision that created it. */
  readonly next: Buffer;
  readonly created: bigint;
  readonly notice: { readonly name: Buffer; readonly value: Buffer; readonly lease: string };
}

/**
 * Answers: succeeded → handed over and told. Else, in the nested answer, as `letGo`: the next one is not there any
 * more.
 */
export function handOver(lock: KeyRange, name: Buffer, own: ICompare[], along: Along): Step {
  const { name: to, value, lease } = along.notice;
  return {
    compare: [...own, createdBy(along.next, along.created)],
    success: [remove(name), put(to, value, lease)],
    failure: [nested(letGo(lock, name, own, true))],
  };
}

/**
 * Leaves a tombstone, whose value says when it ends; one that ends later stays as it is.
 */
export function entomb(tombstone: Buffer, endsAt: string, lease: string): Step {
  const value = Buffer.from(endsAt);
  return {
    compare: [{ key: tombstone, target: 'Value', result: 'Greater', value }],
    success: [],
    failure: [put(tombstone, value, lease)],
  };
}

/** Tells a process that one of its claims holds the lock. Answers nothing of interest. */
export function tell({ name, value, lease }: Along['notice']): Step {
  return { compare: [], success: [put(name, value, lease)] };
}
