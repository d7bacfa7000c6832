/**
 * Renew, for one lease or many.
 *
 * Flow: not the live holder, or another token → lost, and an expired lease goes to the first live ticket; else the
 * lease ends at now + ttl, or later if it did already (S5).
 * First all leases of locks that nobody waits for are renewed, by what fits into a few lines.
 * KEYS and ARGV: see the record's layout. Fields of a renewal: record (what stands behind 'guard:'); ttl ms; token
 *   (19 digits), session, '|', claim, '|'.
 * Answers: 1, all are renewed; or one per lease: 1 renewed · 0 lost.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { FIELDS, LOCK_PRELUDE } from './lock-record.lua.js';
import { TELL } from './tell.lua.js';

const RENEW_QUIET = `
local names, ttls, proofs = {}, {}, {}
while at <= #fields do
  names[#names + 1] = start .. field()
  ttls[#names] = field()
  proofs[#names] = field()
end
local found = redis.call('MGET', unpack(names))
local answers, rest = {}, {}
for i = 1, #names do
  local v, proof = found[i], proofs[i]
  if v and string.byte(v, 1) == 104 and string.sub(v, 18, 17 + #proof) == proof then
    if redis.call('PTTL', names[i]) < tonumber(ttls[i]) then
      redis.call('PEXPIRE', names[i], ttls[i])
    else
      -- Nothing to write, and yet an answer that only a master can give.
      redis.call('PERSIST', KEYS[1])
    end
    answers[i] = 1
  else
    rest[#rest + 1] = i
  end
end
if #rest == 0 then return 1 end
`;

const RENEW_ONE = `
local function renew(key, ttl, proof)
  local queue, tickets = beside(key)
  local record, v = read(key)
  if not live(record) then
    if record then let_go(key, queue, tickets, record) end
    return 0
  end
  if string.sub(v, 18, 17 + #proof) ~= proof then return 0 end
  -- A server whose memory is used up lets a script go on after a write that needs none.
  only_on_a_master()
  record.ends = math.max(record.ends, now + ttl * 1000)
  write(key, record, math.max(redis.call('PTTL', key), ttl + 1000))
  outlive(key, queue, tickets, record.ends)
  return 1
end

for _, i in ipairs(rest) do
  answers[i] = renew(names[i], tonumber(ttls[i]), proofs[i])
  if answers[i] == 0 then only_on_a_master() end
end
return answered(answers)`;

export const RENEW = script(FIELDS, RENEW_QUIET, DECIMAL, TELL, LOCK_PRELUDE, RENEW_ONE);
