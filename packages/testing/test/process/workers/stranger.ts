/** Speaks to a parent process of its own, which the test is not. */
export default function stranger(): string {
  for (const message of [
    null,
    undefined,
    7,
    'ready',
    { type: 'returned', value: 'no' },
    { type: 'message' },
  ]) {
    if (message !== undefined) process.send?.(message);
  }
  return 'returned';
}
