/**
 * What every state script begins with: the layout of an entry.
 *
 * An entry is one hash: `v` value (absent once deleted), `n` version (19 digits), `w` id of the last write, `e` end in
 * µs of the server's clock (0: none), `f` and `t` lock and token of the fence under which it was last written. A
 * deleted or expired entry stays for a while without its value: for its version, which never restarts, for its fence,
 * and so that a re-sent write recognises itself.
 */
export const STATE_PRELUDE = `
local function load(entry)
  local h = redis.call('HMGET', entry, 'v', 'n', 'w', 'e', 'f', 't')
  local ends = tonumber(h[4] or '0')
  local present = h[1] and (ends == 0 or ends > now)
  return { value = h[1], version = h[2], write = h[3], ends = ends, lock = h[5], token = h[6], present = present }
end
`;
