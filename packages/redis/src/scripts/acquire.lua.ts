/**
 * Acquire, for one claim or many.
 *
 * Flow: tombstone → refused; a live grant of this very claim → its lease is set anew; a live lock of somebody else, or
 * a live ticket before this one → busy, or a ticket; else the lock.
 * First all locks that are free with nobody waiting are taken, by what fits into a few lines: that is nearly all of
 * them. What is left goes through the whole of it, which is only set up where it is needed.
 * KEYS: the records of all claims, then their queues, their tickets, their tombstones.
 * ARGV: how long a free record is kept in ms, channel prefix; then seven per claim: claim, ttl ms, wait (1 or 0),
 *   ticket ttl ms, session, floor, holder as JSON.
 * Answers, one per claim: {'g', token} · {'q', ahead, minted, fresh (1 or 0)} · {'b', holder, ms left} · {'c'}.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { LOCK_PRELUDE } from './lock-record.lua.js';

const TAKE_FREE = `
local n = #KEYS / 4
local answers, rest = {}, {}
local records = redis.call('MGET', unpack(KEYS, 1, n))
local given_up = redis.call('EXISTS', unpack(KEYS, 3 * n + 1, 4 * n)) > 0
for i = 1, n do
  local v = records[i]
  if given_up or (v and string.byte(v, 20) ~= 102) then
    rest[#rest + 1] = i
  else
    local a = i * 7 - 5
    local token = stamp
    if v and string.sub(v, 1, 19) >= token then token = after(string.sub(v, 1, 19)) end
    if ARGV[a + 6] > token then token = ARGV[a + 6] end
    local holder = ARGV[a + 5] .. '|' .. ARGV[a + 1] .. '|' .. ARGV[a + 7]
    redis.call('SET', KEYS[i], token .. 'h0000000000000000' .. holder, 'PX', ARGV[a + 2])
    answers[i] = { 'g', token }
  end
end
if #rest == 0 then return answers end
`;

const ACQUIRE_ONE = `
local function grant(key, queue, tickets, record, a)
  local waiting = record and record.mode == 'q' and first(queue, tickets)
  local r = { token = mint(record, a.floor), session = a.session, claim = a.claim, holder = a.holder }
  if waiting then
    r.mode, r.ends = 'q', now + a.ttl * 1000
    write(key, r, math.max(redis.call('PTTL', key), a.ttl + 1000))
  else
    r.mode, r.ends = 'h', 0
    write(key, r, a.ttl)
  end
  return { 'g', r.token }
end

local function renew_own(key, queue, tickets, record, a)
  if record.mode == 'h' then
    if redis.call('PTTL', key) < a.ttl then redis.call('PEXPIRE', key, a.ttl) end
  else
    record.ends = math.max(record.ends, now + a.ttl * 1000)
    write(key, record, math.max(redis.call('PTTL', key), a.ttl + 1000))
    outlive(key, queue, tickets, record.ends)
  end
  return { 'g', record.token }
end

local function save_ticket(tickets, claim, t)
  local head = digits(t.ends, 16) .. digits(t.ttl, 15) .. t.floor
  redis.call('HSET', tickets, claim, head .. t.session .. '|' .. t.holder)
end

-- Every live ticket of the session lives on: one process sends one refresh per key and period.
local function refresh(queue, tickets, session)
  local all = redis.call('HGETALL', tickets)
  local latest = 0
  for i = 1, #all, 2 do
    local t = ticket(all[i + 1])
    if t.session == session and t.ends > now then
      t.ends = now + t.ttl * 1000
      save_ticket(tickets, all[i], t)
      latest = math.max(latest, t.ends)
    end
  end
  return latest
end

local function enqueue(key, queue, tickets, record, a)
  if record.mode == 'h' then
    record.mode, record.ends = 'q', now + redis.call('PTTL', key) * 1000
    write(key, record, math.ceil((record.ends - now) / 1000) + 1000)
  end
  local v = redis.call('HGET', tickets, a.claim)
  local latest
  if v and ticket(v).ends > now then
    latest = refresh(queue, tickets, a.session)
  else
    v = nil
    drop(queue, tickets, a.claim)
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', queue, math.max(now, last and last + 1 or 0), a.claim)
    latest = now + a.ticket_ttl * 1000
    save_ticket(tickets, a.claim, {
      ends = latest, ttl = a.ticket_ttl, floor = a.floor, session = a.session, holder = a.holder,
    })
  end
  outlive(key, queue, tickets, math.max(latest, record.ends))
  return { 'q', redis.call('ZRANK', queue, a.claim), record.token, v and 0 or 1 }
end

local function acquire(key, queue, tickets, tombstone, a, keep, channel)
  if redis.call('EXISTS', tombstone) == 1 then return { 'c' } end
  local record = read(key)
  if live(record) and record.claim == a.claim then return renew_own(key, queue, tickets, record, a) end
  if record and record.mode == 'q' and not live(record) then
    local claim, t = first(queue, tickets)
    if claim == a.claim then
      drop(queue, tickets, claim)
    elseif claim then
      record = hand_over(key, queue, tickets, record, claim, t, channel)
    end
  end
  if not live(record) then return grant(key, queue, tickets, record, a) end
  if a.wait then return enqueue(key, queue, tickets, record, a) end
  if record.mode == 'q' then drop(queue, tickets, a.claim) end
  return { 'b', record.holder, ms_left(key, record) }
end

for _, i in ipairs(rest) do
  local a = i * 7 - 5
  answers[i] = acquire(KEYS[i], KEYS[n + i], KEYS[2 * n + i], KEYS[3 * n + i], {
    claim = ARGV[a + 1],
    ttl = tonumber(ARGV[a + 2]),
    wait = ARGV[a + 3] == '1',
    ticket_ttl = tonumber(ARGV[a + 4]),
    session = ARGV[a + 5],
    floor = ARGV[a + 6],
    holder = ARGV[a + 7],
  }, ARGV[1], ARGV[2])
end
return answers`;

export const ACQUIRE = script(DECIMAL, TAKE_FREE, LOCK_PRELUDE, ACQUIRE_ONE);
