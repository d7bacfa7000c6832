/** How large a step is in a request: etcd refuses a request that is larger than its limit, all of a batch with it. */
import type { Step } from './statements/txn.js';

/** What a comparison or an operation names. */
interface Named {
  readonly key?: Buffer;
  readonly range_end?: Buffer;
  readonly value?: Buffer;
}

/** More than a comparison, an operation or a transaction is beside what it names: tags, lengths and numbers. */
const EACH_BYTES = 40;

/** What a step is in a request, or a little more: etcd counts every branch of it. */
export function bytesOf({ compare = [], success = [], failure = [] }: Step): number {
  let bytes = EACH_BYTES;
  for (const one of compare) bytes += sizeOf(one);
  for (const { request_txn, request_put, request_range, request_delete_range } of [...success, ...failure]) {
    bytes +=
      request_txn === undefined
        ? sizeOf(request_put ?? request_range ?? request_delete_range ?? {})
        : bytesOf(request_txn);
  }
  return bytes;
}

function sizeOf({ key, range_end, value }: Named): number {
  return EACH_BYTES + (key?.length ?? 0) + (range_end?.length ?? 0) + (value?.length ?? 0);
}
