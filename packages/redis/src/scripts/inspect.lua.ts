/**
 * Inspect, for one lock or many. Changes nothing but what an expired lease needs anyway: it goes to the next in line.
 *
 * KEYS and ARGV: see the record's layout. The field of a lock: record (what stands behind 'guard:').
 * Answers, one per lock: {token, held (1 or 0), ms left, session, claim, holder as JSON, live tickets}. The token of a
 * lock that nobody holds is the last one of all locks that share its tag.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { FIELDS, LOCK_PRELUDE } from './lock-record.lua.js';
import { TELL } from './tell.lua.js';

const INSPECT_ONE = `
local function waiting(record, tickets)
  local count = 0
  -- Nobody waits for it: tickets that are here belong to a record that was lost.
  if record.mode == 'h' then return count end
  for _, v in ipairs(redis.call('HVALS', tickets)) do
    if ticket(v).ends > now then count = count + 1 end
  end
  return count
end

local answers = {}
while at <= #fields do
  local key = start .. field()
  local queue, tickets = beside(key)
  local record = read(key)
  if record and not live(record) then record = let_go(key, queue, tickets, record) end
  if record then
    answers[#answers + 1] = {
      record.token, 1, ms_left(key, record), record.session, record.claim, record.holder, waiting(record, tickets),
    }
  else
    only_on_a_master()
    answers[#answers + 1] = { string.sub(redis.call('GET', KEYS[1]) or '0', 1, 19), 0, 0, '', '', '', 0 }
  end
end
return answered(answers)`;

export const INSPECT = script(DECIMAL, FIELDS, TELL, LOCK_PRELUDE, INSPECT_ONE);
