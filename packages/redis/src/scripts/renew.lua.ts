/**
 * Renew, for one lease or many.
 *
 * Flow: not the live holder, or another token → lost, and an expired lease goes to the first live ticket; else the
 * lease ends at now + ttl, or later if it did already (S5).
 * KEYS, three per lease: record, queue, tickets.
 * ARGV: how long a free record is kept in ms, channel prefix; then three per lease: claim, token, ttl ms.
 * Answers, one per lease: 1 renewed · 0 lost.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { LOCK_PRELUDE } from './lock-record.lua.js';

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

local answers = {}
for i = 0, #KEYS / 3 - 1 do
  local k, v = i * 3, 2 + i * 3
  answers[i + 1] = renew(
    KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], ARGV[v + 1], ARGV[v + 2], tonumber(ARGV[v + 3]), ARGV[1], ARGV[2])
end
return answers`;

export const RENEW = script(DECIMAL, LOCK_PRELUDE, RENEW_ONE);
