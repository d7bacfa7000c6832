/** UTF-8 sorts like code points, which JavaScript's own order of texts does not. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
