/**
 * Release and cancel: a script for many claims, and one for a lone claim.
 *
 * Flow: a cancel leaves its tombstone first. The live holder (a release also needs the token) → the lock goes to the
 * first live ticket in this very step, or becomes free. A cancel that holds nothing takes its ticket out of the queue.
 * Whoever meets an expired lease hands it on.
 * First all locks that nobody waits for are given back, by what fits into a few lines.
 * KEYS and ARGV: see the record's layout. Fields of a release: record (what stands behind 'guard:'); token (19 digits),
 *   session, '|', claim, '|'. Of a cancel the second: 'c', tombstone in ms (15 digits, 0: none), session, '|', claim, '|'.
 *   Of a lone one: KEYS: the last token, record. ARGV: the second field.
 * Answers: 1, all are released; or one per claim: 1 released · 0 lost.
 */
import { DECIMAL } from './decimal.lua.js';
import { script, type ScriptPair } from './script.js';
import { LOCK_PRELUDE } from './lock-record.lua.js';
import { TELL } from './tell.lua.js';

const GIVE_BACK = `
local find, sub = string.find, string.sub
local start, fields = sub(KEYS[1], 1, -1 - ARGV[1]), ARGV[2]
local names, proofs = {}, {}
local at, n = 1, 0
while at <= #fields do
  local a = find(fields, '\\0', at, true)
  local b = find(fields, '\\0', a + 1, true)
  n = n + 1
  names[n], proofs[n] = start .. sub(fields, at, a - 1), sub(fields, a + 1, b - 1)
  at = b + 1
end
local found = redis.call('MGET', unpack(names))
local answers, rest, own = {}, {}, {}
for i = 1, n do
  local v, proof = found[i], proofs[i]
  if v and string.byte(v, 1) == 104 and sub(v, 18, 17 + #proof) == proof then
    own[#own + 1] = names[i]
    answers[i] = 1
  else
    rest[#rest + 1] = i
  end
end
if #own > 0 then redis.call('DEL', unpack(own)) end
if #rest == 0 then return 1 end
`;

const GIVE_ONE_BACK = `
local proof, v = ARGV[1], redis.call('GET', KEYS[2])
if v and string.byte(v, 1) == 104 and string.sub(v, 18, 17 + #proof) == proof then
  redis.call('DEL', KEYS[2])
  return 1
end
local names, proofs, rest, answers = { KEYS[2] }, { proof }, { 1 }, {}
`;

const RELEASE_ONE = `
local function bury(claim, ms)
  redis.call('ZREMRANGEBYSCORE', graves, '-inf', now)
  local grave = redis.call('ZSCORE', graves, claim)
  local ends = now + ms * 1000
  if not grave or tonumber(grave) < ends then redis.call('ZADD', graves, digits(ends, 1), claim) end
  -- Expiries are whole milliseconds: nobody may find the list gone while the mark below still asks for it.
  if redis.call('PTTL', graves) < ms + 2 then redis.call('PEXPIRE', graves, ms + 2) end
  local last = redis.call('GET', KEYS[1]) or digits(0, 19)
  local mark = digits(ends, 19)
  if string.sub(last, 20) < mark then redis.call('SET', KEYS[1], string.sub(last, 1, 19) .. mark) end
end

local function cancel(key, identity, ms)
  local claim = string.match(identity, '|(.*)|$')
  if ms > 0 then bury(claim, ms) end
  local queue, tickets = beside(key)
  local record, v = read(key)
  if live(record) and string.sub(v, 37, 36 + #identity) == identity then
    let_go(key, queue, tickets, record)
    return 1
  end
  local had = drop(queue, tickets, claim) == 1
  if record and not live(record) then let_go(key, queue, tickets, record) end
  return (had or ms > 0) and 1 or 0
end

local function release(key, proof)
  local queue, tickets = beside(key)
  local record, v = read(key)
  if not record then return 0 end
  local own = live(record) and string.sub(v, 18, 17 + #proof) == proof
  if own or not live(record) then let_go(key, queue, tickets, record) end
  return own and 1 or 0
end

for _, i in ipairs(rest) do
  local a = proofs[i]
  if string.byte(a, 1) == 99 then
    answers[i] = cancel(names[i], string.sub(a, 17), tonumber(string.sub(a, 2, 16)))
  else
    answers[i] = release(names[i], a)
  end
  if answers[i] == 0 then only_on_a_master() end
end
return answered(answers)`;

export const RELEASE: ScriptPair = {
  many: script(GIVE_BACK, DECIMAL, TELL, LOCK_PRELUDE, RELEASE_ONE),
  lone: script(GIVE_ONE_BACK, DECIMAL, TELL, LOCK_PRELUDE, RELEASE_ONE),
};
