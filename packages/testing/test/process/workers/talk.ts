/** Answers what it is told, and ends with what it was given. */
import type { WorkerScope } from '@guard/testing';

export default async function talk({
  input,
  tell,
  hear,
}: WorkerScope<{ n: bigint; at: Date }>): Promise<bigint> {
  await tell({ heard: await hear(), at: input.at });
  return input.n * 2n;
}
