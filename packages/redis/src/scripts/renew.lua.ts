/**
 * Renew, for one lease or many.
 *
 * Flow: not the live holder, or another token → lost, and an expired lease goes to the first live ticket; else the
 * lease ends at now + ttl, or later if it did already (S5).
 * First all leases of locks that nobody waits for are renewed, by what fits into a few lines.
 * KEYS: the records of all leases, then their queues, their tickets.
 * ARGV: how long a free record is kept in ms, channel prefix; then three per lease: claim, token, ttl ms.
 * Answers, one per lease: 1 renewed · 0 lost.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { LOCK_PRELUDE } from './lock-record.lua.js';

const RENEW_QUIET = `
local n = #KEYS / 3
local answers, rest = {}, {}
local records = redis.call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
  local v, a = records[i], i * 3 - 1
  local own = false
  if v and string.byte(v, 20) == 104 and string.sub(v, 1, 19) == ARGV[a + 2] then
    local claim = string.find(v, '|', 37, true) + 1
    own = string.find(v, ARGV[a + 1] .. '|', claim, true) == claim
  end
  if own then
    if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[a + 3]) then redis.call('PEXPIRE', KEYS[i], ARGV[a + 3]) end
    answers[i] = 1
  else
    rest[#rest + 1] = i
  end
end
if #rest == 0 then return answers end
`;

const RENEW_ONE = `
local function renew(key, queue, tickets, claim, token, ttl, keep, channel)
  local record = read(key)
  if not live(record) then
    if record and record.mode == 'q' then let_go(key, queue, tickets, record, keep, channel) end
    return 0
  end
  if record.claim ~= claim or record.token ~= token then return 0 end
  if record.mode == 'h' then
    if redis.call('PTTL', key) < ttl then redis.call('PEXPIRE', key, ttl) end
    return 1
  end
  record.ends = math.max(record.ends, now + ttl * 1000)
  write(key, record, math.max(redis.call('PTTL', key), ttl + 1000))
  outlive(key, queue, tickets, record.ends)
  return 1
end

for _, i in ipairs(rest) do
  local a = i * 3 - 1
  answers[i] = renew(
    KEYS[i], KEYS[n + i], KEYS[2 * n + i], ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[1], ARGV[2])
end
return answers`;

export const RENEW = script(DECIMAL, RENEW_QUIET, LOCK_PRELUDE, RENEW_ONE);
