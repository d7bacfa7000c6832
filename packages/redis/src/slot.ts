/** The slot of a cluster that a hash tag belongs to (CRC-16/XMODEM over the tag, as Redis specifies it). */

const SLOTS = 16_384;
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

/** The slot of a key whose tag is everything between the first brace and the next closing one. */
export function slotOf(name: string): number {
  const start = name.indexOf('{') + 1;
  const bytes = Buffer.from(name.slice(start, name.indexOf('}', start)));
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) ^ TABLE[((crc >> 8) ^ byte) & 0xff]!) & 0xffff;
  return crc % SLOTS;
}
