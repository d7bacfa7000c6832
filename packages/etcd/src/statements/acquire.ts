/**
 * Acquire, one transaction per claim.
 *
 * A claim of a lock that is thought to be free: nothing refuses it and the lock's range is empty → its key is put, and
 * it holds the lock. Otherwise nothing is left behind.
 * A claim that has no key yet: nothing refuses it and the lock's range is empty → its key is put, and it holds the
 * lock. Otherwise, where it waits, its key is put behind the others, as a ticket.
 * A claim whose key is known: nothing is older → it holds the lock, and its key moves to the lock's lease. Otherwise
 * the ticket stays as it is, or is taken away where the claim does not wait.
 */
import type { KeyRange } from '../names.js';
import {
  createdBy,
  isAbsent,
  isEmpty,
  nested,
  noneOlder,
  oldest,
  put,
  read,
  remove,
  writtenBy,
  type Step,
} from './txn.js';

/** What the steps of a claim are made of. */
export interface ClaimParts {
  readonly lock: KeyRange;
  readonly name: Buffer;
  readonly tombstone: Buffer;
  /** Value and lease of the key of a holder. */
  readonly held: { readonly value: Buffer; readonly lease: string };
  /** Value and lease of the key of a ticket; `undefined`: the claim leaves nothing behind where it is not granted. */
  readonly ticket: { readonly value: Buffer; readonly lease: string } | undefined;
}

/** The oldest two: the holder, and whoever is next. */
const HEAD = 2;

/** Answers: succeeded → granted, created by this revision. Else → the oldest keys. */
export function acquireFree({ lock, name, tombstone, held }: Omit<ClaimParts, 'ticket'>): Step {
  return {
    compare: [isAbsent(tombstone), isEmpty(lock)],
    success: [put(name, held.value, held.lease)],
    failure: [oldest(lock, HEAD)],
  };
}

/**
 * Answers: succeeded → granted, created by this revision. Else, in the nested answer: succeeded → [put,] the oldest
 * keys; the ticket was created by this revision. Else → the tombstone, the whole lock.
 */
export function acquireNew({ lock, name, tombstone, held, ticket }: ClaimParts): Step {
  const look = oldest(lock, HEAD);
  return {
    compare: [isAbsent(tombstone), isEmpty(lock)],
    success: [put(name, held.value, held.lease)],
    failure: [
      nested({
        compare: [isAbsent(tombstone), isAbsent(name)],
        success: ticket === undefined ? [look] : [look, put(name, ticket.value, ticket.lease)],
        failure: [read(tombstone), read(name)],
      }),
    ],
  };
}

/** A claim's key, as its process knows it. */
export interface Standing {
  /** The revision that created it. */
  readonly created: bigint;
  /** The revision that wrote it last. */
  readonly modified: bigint;
}

/**
 * `ticket`: a ticket that stays is written again, as this; `undefined`: it stays as it is. Whatever was sent before and
 * is carried out later finds a key that was written since, and changes nothing.
 *
 * Answers: succeeded → granted. Else, in the nested answer: succeeded → the oldest keys; the ticket still stands, or,
 * where the claim does not wait, was taken away. Else → the tombstone, the key: it is gone, or was written since.
 */
export function acquireKnown(parts: ClaimParts, { created, modified }: Standing, waits: boolean): Step {
  const { lock, name, tombstone, held, ticket } = parts;
  const look = oldest(lock, HEAD);
  const same = [isAbsent(tombstone), createdBy(name, created), writtenBy(name, modified)];
  const stays = ticket === undefined ? [look] : [look, put(name, ticket.value, ticket.lease)];
  return {
    compare: [...same, noneOlder(lock, created)],
    success: [put(name, held.value, held.lease)],
    failure: [
      nested({
        compare: same,
        success: waits ? stays : [look, remove(name)],
        failure: [read(tombstone), read(name)],
      }),
    ],
  };
}
