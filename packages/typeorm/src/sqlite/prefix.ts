/**
 * Prefixes as ranges of bytes. `LIKE` knows wildcards and folds case; a range from the prefix itself to the first
 * text behind all that start with it knows neither, and walks an index.
 */

/**
 * The first text, as bytes, that is larger than every text which starts with `prefix`. No byte of UTF-8 is 0xff, so
 * the last byte can always be raised by one.
 */
export function endOfPrefix(prefix: string): Uint8Array {
  if (prefix === '') return Uint8Array.of(0xff);
  const bytes = Buffer.from(prefix, 'utf8');
  bytes[bytes.length - 1]! += 1;
  return bytes;
}
