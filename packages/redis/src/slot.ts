/**
 * Slots of a cluster, and the few of them that Guard uses. All keys of one script must share a slot, so keys are dealt
 * out to 64 tags whose slots are spread evenly over a cluster: locks of one tag travel together, and a cluster of many
 * masters still shares the work. On a single server the tags are names like any other.
 */

const SLOTS = 16_384;
const SLOTS_PER_TAG = 256;
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});
/** The first number, as a text, in each run of 256 slots. */
export const TAGS: readonly string[] = evenTags();

/** The slot of a text (CRC-16/XMODEM, as Redis specifies it for what stands between the braces of a key). */
export function slotOf(text: string): number {
  let crc = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code > 127) return slotOfBytes(Buffer.from(text));
    crc = ((crc << 8) ^ TABLE[((crc >> 8) ^ code) & 0xff]!) & 0xffff;
  }
  return crc % SLOTS;
}

function slotOfBytes(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) ^ TABLE[((crc >> 8) ^ byte) & 0xff]!) & 0xffff;
  return crc % SLOTS;
}

/** The tag that a key belongs to, for ever. */
export function tagOf(key: string): string {
  return TAGS[Math.floor(slotOf(key) / SLOTS_PER_TAG)]!;
}

function evenTags(): readonly string[] {
  const tags: string[] = [];
  let left = SLOTS / SLOTS_PER_TAG;
  for (let n = 0; left > 0; n += 1) {
    const place = Math.floor(slotOf(String(n)) / SLOTS_PER_TAG);
    if (tags[place] !== undefined) continue;
    tags[place] = String(n);
    left -= 1;
  }
  return tags;
}
