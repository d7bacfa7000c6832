/**
 * The few words that every transaction is made of. etcd evaluates all comparisons of a transaction, nested ones too,
 * before it carries anything out: so two operations on one lock never stand in one transaction.
 */
import type { ICompare, IKeyValue, IRequestOp, IResponseOp, ITxnRequest, ITxnResponse } from 'etcd3';
import type { KeyRange } from '../names.js';

/** What one operation asks, and what etcd answered to it. */
export type Step = ITxnRequest;

/** The answer to one step. */
export interface Answer {
  readonly succeeded: boolean;
  readonly responses: readonly IResponseOp[];
}

/** The server takes 128 operations in one transaction: those of the outer one and the deepest nested one. */
export const MAX_STEPS = 32;

/** Several steps as one transaction; a single one as it is. `also`: operations that are carried out in any case. */
export function together(steps: readonly Step[], also: readonly IRequestOp[] = []): ITxnRequest {
  const [first] = steps;
  if (steps.length === 1 && also.length === 0 && first !== undefined) return first;
  return { compare: [], success: [...steps.map(nested), ...also] };
}

/** The answers to the steps of `together`, in their order; `count`: of steps and of other operations. */
export function apart(response: ITxnResponse, count: number): readonly Answer[] {
  if (count === 1) return [response];
  return response.responses.map((one) => one.response_txn);
}

/** A step inside another one. */
export function nested(step: Step): IRequestOp {
  return { request_txn: step };
}

/** The key was created by this revision, and was not deleted since. */
export function createdBy(key: Buffer, revision: bigint): ICompare {
  return { key, target: 'Create', result: 'Equal', create_revision: written(revision) };
}

/** Nobody has written the key since this revision did. */
export function writtenBy(key: Buffer, revision: bigint): ICompare {
  return { key, target: 'Mod', result: 'Equal', mod_revision: written(revision) };
}

export function isAbsent(key: Buffer): ICompare {
  return createdBy(key, 0n);
}

/** Nothing is in the range. */
export function isEmpty({ key, range_end }: KeyRange): ICompare {
  return { key, range_end, target: 'Create', result: 'Equal', create_revision: 0 };
}

/** Something is in the range, and nothing of it is older than this revision. */
export function noneOlder({ key, range_end }: KeyRange, revision: bigint): ICompare {
  return { key, range_end, target: 'Create', result: 'Greater', create_revision: written(revision - 1n) };
}

/** The value stands between two texts, without them. */
export function valueBetween(key: Buffer, [from, to]: readonly [string, string]): ICompare[] {
  return [
    { key, target: 'Value', result: 'Greater', value: Buffer.from(from) },
    { key, target: 'Value', result: 'Less', value: Buffer.from(to) },
  ];
}

/** Something is in the range, and every value in it stands before this text. */
export function valuesBelow({ key, range_end }: KeyRange, text: string): ICompare {
  return { key, range_end, target: 'Value', result: 'Less', value: Buffer.from(text) };
}

/** As a number, which is exact: no cluster lives to see 2^53 writes. A text would be parsed by the client's encoder. */
function written(revision: bigint): number {
  return Number(revision);
}

export function put(key: Buffer, value: Buffer, lease: string): IRequestOp {
  return { request_put: { key, value, lease } };
}

export function remove(key: Buffer): IRequestOp {
  return { request_delete_range: { key } };
}

/** Answers what was deleted as well. */
export function take(key: Buffer): IRequestOp {
  return { request_delete_range: { key, prev_kv: true } };
}

/** The oldest keys of a range, with their values. */
export function oldest({ key, range_end }: KeyRange, limit: number): IRequestOp {
  return { request_range: { key, range_end, sort_order: 'Ascend', sort_target: 'Create', limit } };
}

export function read(key: Buffer): IRequestOp {
  return { request_range: { key } };
}

/** Keys that a read found. */
export function found(response: IResponseOp | undefined): readonly IKeyValue[] {
  return response?.response_range?.kvs ?? [];
}
