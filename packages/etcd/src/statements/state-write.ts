/**
 * Write, one transaction per entry.
 *
 * Flow: the last write was this very one → its version again; a larger token of the same lock wrote last → fenced; the
 * caller took a large entry for present that is not, or the other way round, or has no lease yet for its fence, or one
 * made for another ttl → asked back; the expectation does not hold → conflict; else written.
 *
 * An entry's value begins with the id of its write. What must outlive the entry stands beside it, under leases of its
 * own: its fence, and the id of the write that deleted it.
 */
import type { ICompare, IRequestOp } from 'etcd3';
import type { StateWrite } from '@guard/core';
import { boundsAbove, boundsOfWrite, entryValue, fenceText, isSmall } from '../state-value.js';
import { createdBy, isAbsent, nested, put, read, remove, valueBetween, type Step } from './txn.js';

/** What the step of a write is made of. */
export interface WriteParts {
  readonly entry: Buffer;
  readonly fence: Buffer;
  readonly deletion: Buffer;
  readonly write: StateWrite;
  /** Lease of the entry, where it has a ttl; of the id of a deletion. */
  readonly lease: string;
  /** Lease of a fence that is to outlive an entry with a ttl; `undefined`: there is none yet. */
  readonly fenceLease: string | undefined;
  /** Where the entry keeps its ttl: the lease of the entry that `fenceLease` was made to outlive. */
  readonly outlived: string | undefined;
  /**
   * For a large write that keeps the ttl of whatever is there: whether it takes something to be there. A request names
   * a large value once, because it may be most of what the server takes; a small one is named for both.
   */
  readonly present: boolean;
}

/** No lease: it does not end. */
export const FOREVER = '0';

/** What a write came to, in the order of its flow: how many nested answers deep. */
export type Stage = 'again' | 'fenced' | 'presence' | 'lease' | 'decided';

/** The stages of a write, outermost first. */
export function stagesOf(write: StateWrite): readonly Stage[] {
  const stages: Stage[] = ['again'];
  if (write.fence !== undefined) stages.push('fenced');
  if (takesForGranted(write)) stages.push('presence');
  if (isKept(write) && write.fence !== undefined) stages.push('lease');
  return [...stages, 'decided'];
}

/**
 * Each stage that succeeded answers by one read: of the entry or deletion, the fence, the entry, the entry. `decided` answers what
 * was put, or reads the entry where the expectation did not hold. A stage that failed answers with the next one.
 */
export function writeStep(parts: WriteParts): Step {
  return stagesOf(parts.write).reduceRight<Step | undefined>((next, stage) => {
    const step = stageStep(stage, parts);
    return next === undefined ? step : { ...step, failure: [nested(next)] };
  }, undefined)!;
}

function stageStep(stage: Stage, parts: WriteParts): Step {
  const { entry, fence, deletion, write, present } = parts;
  switch (stage) {
    case 'again':
      return write.value === null
        ? { compare: [hasValue(deletion, write.writeId), isAbsent(entry)], success: [bare(deletion)] }
        : {
            compare: valueBetween(entry, boundsOfWrite(write.writeId, write.value)),
            success: [bare(entry)],
          };
    case 'fenced': {
      const { lock, token } = write.fence!;
      return { compare: valueBetween(fence, boundsAbove(lock, token)), success: [read(fence)] };
    }
    case 'presence':
      return { compare: [present ? isAbsent(entry) : exists(entry)], success: [bare(entry)] };
    case 'lease':
      return { compare: [isAbsent(fence), ...outlivesFence(parts)], success: [bare(entry)] };
    case 'decided':
      return isKept(write) && write.expect === 'any' && !takesForGranted(write)
        ? { compare: [], success: [nested(eitherWay(parts)), ...fenceOps(parts)] }
        : {
            compare: expectation(entry, write),
            success: [...entryOps(parts), ...fenceOps(parts)],
            failure: [bare(entry)],
          };
  }
}

/** The entry has a ttl, and not the one that the lease of the fence was made for. */
function outlivesFence({ entry, outlived }: WriteParts): ICompare[] {
  const known = outlived === undefined ? [FOREVER] : [FOREVER, outlived];
  return known.map((lease) => stands(entry, 'NotEqual', lease));
}

/** Writes what keeps the ttl of whatever is there. */
function eitherWay(parts: WriteParts): Step {
  return {
    compare: [exists(parts.entry)],
    success: entryOps({ ...parts, present: true }),
    failure: entryOps({ ...parts, present: false }),
  };
}

function expectation(entry: Buffer, { expect }: StateWrite): ICompare[] {
  if (expect === 'any') return [];
  if (expect === 'absent') return [isAbsent(entry)];
  const isRevision = /^[1-9]\d{0,18}$/.test(expect.version);
  // A version that no entry of this store can have.
  if (!isRevision) return [isAbsent(entry), exists(entry)];
  return [{ key: entry, target: 'Mod', result: 'Equal', mod_revision: expect.version }];
}

function entryOps({ entry, deletion, write, lease, present }: WriteParts): IRequestOp[] {
  const { value, writeId, ttl, expect } = write;
  if (value === null) return [remove(entry), put(deletion, Buffer.from(writeId), lease)];
  const text = entryValue(writeId, value);
  if (!isKept(write)) return [put(entry, text, typeof ttl === 'number' ? lease : FOREVER)];
  const isThere = expect !== 'any' || present;
  return [
    isThere ? { request_put: { key: entry, value: text, ignore_lease: true } } : put(entry, text, FOREVER),
  ];
}

/** The fence lasts at least as long as the entry and a while. One that is there stays, unless a new one is written. */
function fenceOps(parts: WriteParts): IRequestOp[] {
  const { fence, write, lease, fenceLease = FOREVER } = parts;
  const token = write.fence && Buffer.from(fenceText(write.fence.lock, write.fence.token));
  if (isKept(write)) return token === undefined ? liftedFence(parts) : [keptFence(parts, token)];
  const until = write.value === null ? lease : typeof write.ttl === 'number' ? fenceLease : FOREVER;
  if (token !== undefined) return [put(fence, token, until)];
  return [
    nested({
      compare: [exists(fence)],
      success: [{ request_put: { key: fence, ignore_value: true, lease: until } }],
    }),
  ];
}

/**
 * A new fence where the entry keeps its time. An entry without a lease does not end, and neither does one that was not
 * there before: the fence that a delete left behind would.
 */
function keptFence({ entry, fence, fenceLease = FOREVER }: WriteParts, token: Buffer): IRequestOp {
  return nested({
    compare: [stands(entry, 'Equal', FOREVER)],
    success: [put(fence, token, FOREVER)],
    failure: [
      nested({
        compare: [exists(fence)],
        success: [{ request_put: { key: fence, value: token, ignore_lease: true } }],
        failure: [put(fence, token, fenceLease)],
      }),
    ],
  });
}

/** The same without a new one. Who names a version replaces an entry, and that has its fence for as long as it lasts. */
function liftedFence({ entry, fence, write }: WriteParts): IRequestOp[] {
  if (write.expect !== 'any') return [];
  return [
    nested({
      compare: [stands(entry, 'Equal', FOREVER), stands(fence, 'NotEqual', FOREVER)],
      success: [{ request_put: { key: fence, ignore_value: true, lease: FOREVER } }],
    }),
  ];
}

/** Whether it has to know what is there before it can be sent. */
function takesForGranted(write: StateWrite): boolean {
  return isKept(write) && write.expect === 'any' && !isSmall(write.value ?? '');
}

/** Whether the entry keeps its time; one that must not be there has none, so nothing is asked about it. */
function isKept({ ttl, value, expect }: StateWrite): boolean {
  return ttl === 'keep' && value !== null && expect !== 'absent';
}

function exists(key: Buffer): ICompare {
  return { ...createdBy(key, 0n), result: 'Greater' };
}

function hasValue(key: Buffer, value: string): ICompare {
  return { key, target: 'Value', result: 'Equal', value: Buffer.from(value) };
}

/** Whether it stands under this lease; a key that is not there stands under none. */
function stands(key: Buffer, result: 'Equal' | 'NotEqual', lease: string): ICompare {
  return { key, target: 'Lease', result, lease };
}

function bare(key: Buffer): IRequestOp {
  return { request_range: { key, keys_only: true } };
}
