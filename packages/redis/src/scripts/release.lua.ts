/**
 * Release and cancel, for one claim or many.
 *
 * Flow: a cancel leaves its tombstone first. The live holder (a release also needs the token) → the lock goes to the
 * first live ticket in this very step, or becomes free. A cancel that holds nothing takes its ticket out of the queue.
 * Whoever meets an expired lease hands it on.
 * First all locks that nobody waits for are given back, by what fits into a few lines.
 * KEYS: the records of all claims, then their queues, their tickets, their tombstones.
 * ARGV: how long a free record is kept in ms, channel prefix; then three per claim: claim, token ('' for a cancel),
 *   tombstone ms (0: none).
 * Answers, one per claim: 1 released · 0 lost.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { LOCK_PRELUDE } from './lock-record.lua.js';

const GIVE_BACK = `
local n = #KEYS / 4
local answers, rest = {}, {}
local records = redis.call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
  local v, a = records[i], i * 3 - 1
  local own = false
  if v and ARGV[a + 3] == '0' and string.byte(v, 20) == 104 and string.sub(v, 1, 19) == ARGV[a + 2] then
    local claim = string.find(v, '|', 37, true) + 1
    own = string.find(v, ARGV[a + 1] .. '|', claim, true) == claim
  end
  if own then
    local free = ARGV[a + 2] .. 'f0000000000000000||'
    -- A server that is out of memory refuses to remember the token, and must not keep the lock for that.
    if redis.pcall('SET', KEYS[i], free, 'PX', ARGV[1]).err then redis.call('DEL', KEYS[i]) end
    answers[i] = 1
  else
    rest[#rest + 1] = i
  end
end
if #rest == 0 then return answers end
`;

const RELEASE_ONE = `
local function release(key, queue, tickets, tombstone, claim, token, tombstone_ms, keep, channel)
  local cancels = token == ''
  if tombstone_ms > 0 and tombstone_ms > redis.call('PTTL', tombstone) then
    redis.call('SET', tombstone, '', 'PX', tombstone_ms)
  end
  local record = read(key)
  if live(record) and record.claim == claim and (cancels or record.token == token) then
    let_go(key, queue, tickets, record, keep, channel)
    return 1
  end
  local had = cancels and drop(queue, tickets, claim) == 1
  if record and record.mode == 'q' and not live(record) then
    let_go(key, queue, tickets, record, keep, channel)
  end
  return (had or tombstone_ms > 0) and 1 or 0
end

for _, i in ipairs(rest) do
  local a = i * 3 - 1
  answers[i] = release(
    KEYS[i], KEYS[n + i], KEYS[2 * n + i], KEYS[3 * n + i],
    ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[1], ARGV[2])
end
return answers`;

export const RELEASE = script(DECIMAL, GIVE_BACK, LOCK_PRELUDE, RELEASE_ONE);
