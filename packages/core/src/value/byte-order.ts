/**
 * The order of keys that every backend shares: by the bytes of their UTF-8. Texts compare by UTF-16 units in
 * JavaScript, which differs only where surrogates meet the units above them, so no text is ever encoded for it.
 */

/** Orders texts by the bytes of their UTF-8. */
export function compareBytes(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** A unit's place in the order of code points: surrogates stand for code points above all others. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
