/**
 * Release and cancel, for one claim or many.
 *
 * Flow: a cancel leaves its tombstone first. The live holder (a release also needs the token) → the lock goes to the
 * first live ticket in this very step, or becomes free. A cancel that holds nothing takes its ticket out of the queue.
 * Whoever meets an expired lease hands it on.
 * KEYS, four per claim: record, queue, tickets, tombstone.
 * ARGV: how long a free record is kept in ms, channel prefix; then three per claim: claim, token ('' for a cancel),
 *   tombstone ms (0: none).
 * Answers, one per claim: 1 released · 0 lost.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { LOCK_PRELUDE } from './lock-record.lua.js';

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

local answers = {}
for i = 0, #KEYS / 4 - 1 do
  local k, v = i * 4, 2 + i * 3
  answers[i + 1] = release(
    KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4],
    ARGV[v + 1], ARGV[v + 2], tonumber(ARGV[v + 3]), ARGV[1], ARGV[2])
end
return answers`;

export const RELEASE = script(DECIMAL, LOCK_PRELUDE, RELEASE_ONE);
