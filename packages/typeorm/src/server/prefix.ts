/**
 * Prefixes as ranges of texts. `LIKE` knows wildcards; a range from the prefix itself to the first text behind all that
 * start with it knows none, and walks an index.
 */

const LAST = 0x10ffff;
const [BEFORE_SURROGATES, AFTER_SURROGATES] = [0xd7ff, 0xe000];

/**
 * The first text, in the order of bytes, behind every text that starts with `prefix`; `null`: there is no end. UTF-8
 * sorts as its characters do, so raising the last one is enough.
 */
export function afterPrefix(prefix: string): string | null {
  const characters = [...prefix];
  while (characters.length > 0) {
    const point = characters.pop()!.codePointAt(0)!;
    if (point === LAST) continue;
    const next = point === BEFORE_SURROGATES ? AFTER_SURROGATES : point + 1;
    return characters.join('') + String.fromCodePoint(next);
  }
  return null;
}
