/**
 * What every state script begins with: the layout of an entry.
 *
 * An entry is one hash: `v` value (absent once deleted), `n` version (19 digits), `w` id of the last write, `e` end in
 * µs of the server's clock (0: none), `f` and `t` lock and token of the fence under which it was last written. A
 * deleted or expired entry stays for a while without its value: for its version, which never restarts, for its fence,
 * and so that a re-sent write recognises itself.
 *
 * Two sorted sets list entries: the index has all keys, in the order of their bytes; the ends have those of entries
 * that end, by their ends in µs. Nothing tells when an entry ends, so every call takes a few keys whose time is over out
 * of both: two for each entry that it is about, more than it can add.
 */
export const STATE_PRELUDE = `
local function load(entry)
  local h = redis.call('HMGET', entry, 'v', 'n', 'w', 'e', 'f', 't')
  local ends = tonumber(h[4] or '0')
  local present = h[1] and (ends == 0 or ends > now)
  return { value = h[1], version = h[2], write = h[3], ends = ends, lock = h[5], token = h[6], present = present }
end

-- A demoted master refuses what it would write here, and may still show what it has.
local function tidy(index, ends, entries)
  local over = redis.call('ZRANGEBYSCORE', ends, '-inf', digits(now, 1), 'LIMIT', 0, 2 * entries)
  if #over == 0 then return end
  redis.pcall('ZREM', index, unpack(over))
  redis.pcall('ZREM', ends, unpack(over))
end
`;
