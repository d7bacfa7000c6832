/**
 * Inspect, for one lock or many. Changes nothing but what an expired lease needs anyway: it goes to the next in line.
 *
 * KEYS: the records of all locks, then their queues, their tickets.
 * ARGV: how long a free record is kept in ms, channel prefix.
 * Answers, one per lock: {token, held (1 or 0), ms left, session, claim, holder as JSON, live tickets}.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { LOCK_PRELUDE } from './lock-record.lua.js';

const INSPECT_ONE = `
local function waiting(tickets)
  local count = 0
  for _, v in ipairs(redis.call('HVALS', tickets)) do
    if ticket(v).ends > now then count = count + 1 end
  end
  return count
end

local answers = {}
local n = #KEYS / 3
for i = 1, n do
  local key, queue, tickets = KEYS[i], KEYS[n + i], KEYS[2 * n + i]
  local record = read(key)
  if record and record.mode == 'q' and not live(record) then
    record = let_go(key, queue, tickets, record, ARGV[1], ARGV[2]) or read(key)
  end
  if live(record) then
    answers[i] = {
      record.token, 1, ms_left(key, record), record.session, record.claim, record.holder, waiting(tickets),
    }
  else
    answers[i] = { record and record.token or '0', 0, 0, '', '', '', 0 }
  end
end
return answers`;

export const INSPECT = script(DECIMAL, LOCK_PRELUDE, INSPECT_ONE);
