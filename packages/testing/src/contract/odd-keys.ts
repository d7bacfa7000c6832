/**
 * Keys that some backend or some query language has stumbled over. All of them are valid, and each is itself and
 * nothing else [B159] [B162].
 */

/** Short keys, by what is odd about them. */
export const ODD_KEYS: readonly string[] = [
  ...[' ', '  ', ' k', 'k ', 'k', 'K', '/', '//', '..', 'a/../b', 'a', 'b', '.'],
  ...['*', '%', '_', '?', '[k]', '{', '}', '{k}', 'a{k}', 'x{y', 'x}y{', '(k)', '^k$', '\\', '\\\\', 'k\\'],
  ...["'", '"', '`', "k' OR '1'='1", 'k; DROP TABLE locks; --', '$1', ':name', '?1', '#', '--', '/* */'],
  ...[
    'a\nb',
    'a\rb',
    'a\tb',
    '\u0001',
    '\u001f',
    '\u007f',
    '\u0085',
    '\u2028',
    '\ufeffk',
    'k\u200bk',
    '\u00a0',
  ],
  ...['null', 'undefined', 'true', '0', '00', '1e3', '1000', 'NaN', '__proto__', 'constructor', 'toString'],
  // Composed and decomposed, upper and lower, full width: different bytes, different keys.
  ...['\u00e9', 'e\u0301', '\u00c9', 'ß', 'ss', 'ｋ', 'ı', 'i', 'I', 'İ', 'Å', '\u212b'],
  ...[
    '𝒜',
    '👩‍👩‍👧',
    '👩',
    'שלום',
    'مرحبا',
    '\u202ek',
    '日本',
    '한',
    '\u1112\u1161\u11ab',
    '\uffff',
    '\u{10ffff}',
  ],
];

/** Texts of exactly `bytes` bytes that differ in their last byte only, behind `prefix`. */
export function longKeys(prefix: string, bytes: number): readonly [string, string] {
  const fill = 'x'.repeat(bytes - Buffer.byteLength(prefix) - 1);
  return [`${prefix}${fill}0`, `${prefix}${fill}1`];
}

/** A text of exactly `bytes` bytes, of four-byte characters as far as they go. */
export function wideKey(prefix: string, bytes: number): string {
  const left = bytes - Buffer.byteLength(prefix);
  return `${prefix}${'𝒜'.repeat(Math.floor(left / 4))}${'x'.repeat(left % 4)}`;
}
