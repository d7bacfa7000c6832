/**
 * Acquire: a script for many claims, and one for a lone claim.
 *
 * Flow: tombstone → refused; a live grant of this very claim → its lease is set anew, and its token is raised to a floor
 * that is larger; a live lock of somebody else, or a live ticket before this one → busy, or a ticket; else the lock.
 * First all locks that are free with nobody waiting are taken, by what fits into a few lines: that is nearly all of
 * them. What is left goes through the whole of it, which is only set up where it is needed. While a tombstone is
 * remembered every claim goes through the whole of it.
 * KEYS and ARGV: see the record's layout. Fields of a claim: record (what stands behind 'guard:'); ttl ms; floor
 *   (19 digits), wait (1 or 0), ticket ttl in ms (15 digits), session, '|', claim, '|', holder as JSON.
 *   Of a lone claim: KEYS: the last token, record. ARGV: the other fields.
 * Answers: the one token of all claims; or one per claim: token · {'q', ahead, minted, fresh (1 or 0)} · {'b', holder, ms left} · {'c'}.
 */
import { DECIMAL } from './decimal.lua.js';
import { script, type ScriptPair } from './script.js';
import { LOCK_PRELUDE } from './lock-record.lua.js';
import { TELL } from './tell.lua.js';

const TAKE_FREE = `
local call, pcall, find, sub = redis.call, redis.pcall, string.find, string.sub
local start, fields = sub(KEYS[1], 1, -1 - ARGV[1]), ARGV[2]
local last = call('GET', KEYS[1])
local token = next_token(last)
local given_up = last and sub(last, 20) > stamp
local names, ttls, terms, rest = {}, {}, {}, {}
local answers, top, alike = {}, '', true
local at, n = 1, 0
while at <= #fields do
  local a = find(fields, '\\0', at, true)
  local b = find(fields, '\\0', a + 1, true)
  local c = find(fields, '\\0', b + 36, true)
  local name, ttl = start .. sub(fields, at, a - 1), sub(fields, a + 1, b - 1)
  local floor = sub(fields, b + 1, b + 19)
  local own = floor > token and floor or token
  at = c + 1
  n = n + 1
  local took = not given_up
    and pcall('SET', name, 'h0000000000000000' .. own .. sub(fields, b + 36, c - 1), 'NX', 'PX', ttl)
  -- Without memory, those who wait already are served by what follows, and others are refused there.
  if took and took.err and not find(took.err, 'OOM', 1, true) then return took end
  if took and not took.err then
    answers[n] = own
    if own > top then top = own end
    alike = alike and own == token
  else
    names[n], ttls[n], terms[n] = name, ttl, sub(fields, b + 1, c - 1)
    rest[#rest + 1] = n
  end
end
if top ~= '' then call('SET', KEYS[1], top) end
if #rest == 0 then return alike and token or answers end
`;

const TAKE_ONE = `
local call, sub = redis.call, string.sub
local given, last = ARGV[2], call('GET', KEYS[1])
local clock = call('TIME')
local own = '000' .. clock[1] .. sub('00000' .. clock[2], -6)
local given_up = last and sub(last, 20) > own
if not given_up and (not last or last < own) then
  local floor = sub(given, 1, 19)
  if floor > own then own = floor end
  local took = redis.pcall('SET', KEYS[2], 'h0000000000000000' .. own .. sub(given, 36), 'NX', 'PX', ARGV[1])
  if took and not took.err then
    call('SET', KEYS[1], own)
    return own
  end
  -- Without memory, who waits already is served by what follows, and others are refused there.
  if took and not string.find(took.err, 'OOM', 1, true) then return took end
end
local names, ttls, terms, rest, answers = { KEYS[2] }, { ARGV[1] }, { given }, { 1 }, {}
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
  return r.token
end

local function renew_own(key, queue, tickets, record, a)
  -- A server whose memory is used up lets a script go on after a write that needs none.
  only_on_a_master()
  local raised = a.floor > record.token
  if raised then
    record.token = a.floor
    remember(a.floor)
  end
  if record.mode == 'h' then
    local left = redis.call('PTTL', key)
    if raised then
      write(key, record, math.max(left, a.ttl))
    elseif left < a.ttl then
      redis.call('PEXPIRE', key, a.ttl)
    end
  else
    record.ends = math.max(record.ends, now + a.ttl * 1000)
    write(key, record, math.max(redis.call('PTTL', key), a.ttl + 1000))
    outlive(key, queue, tickets, record.ends)
  end
  return record.token
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
  local v, latest
  if record.mode == 'h' then
    record.mode, record.ends = 'q', now + redis.call('PTTL', key) * 1000
    write(key, record, math.ceil((record.ends - now) / 1000) + 1000)
    -- Tickets that are here belong to a record that was lost. Claims that took the lock since then have some too, and
    -- nobody would take what is handed to them; whoever waits makes a new one.
    redis.call('DEL', queue, tickets)
  else
    v = redis.call('HGET', tickets, a.claim)
  end
  if v and ticket(v).ends > now then
    -- A write that needs no memory comes first here too.
    only_on_a_master()
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

local function acquire(key, a)
  local grave = given_up and redis.call('ZSCORE', graves, a.claim)
  if grave and tonumber(grave) > now then return { 'c' } end
  local queue, tickets = beside(key)
  local record = read(key)
  if live(record) and record.claim == a.claim then return renew_own(key, queue, tickets, record, a) end
  if record and not live(record) then
    local claim, t = first(queue, tickets)
    if claim == a.claim then
      drop(queue, tickets, claim)
    elseif claim then
      record = hand_over(key, queue, tickets, record, claim, t)
    end
  end
  if not live(record) then return grant(key, queue, tickets, record, a) end
  if a.wait then return enqueue(key, queue, tickets, record, a) end
  if record.mode == 'q' then drop(queue, tickets, a.claim) end
  only_on_a_master()
  return { 'b', record.holder, ms_left(key, record) }
end

for _, i in ipairs(rest) do
  local v = terms[i]
  local s = string.find(v, '|', 36, true)
  local c = string.find(v, '|', s + 1, true)
  answers[i] = acquire(names[i], {
    ttl = tonumber(ttls[i]),
    floor = string.sub(v, 1, 19),
    wait = string.sub(v, 20, 20) == '1',
    ticket_ttl = tonumber(string.sub(v, 21, 35)),
    session = string.sub(v, 36, s - 1),
    claim = string.sub(v, s + 1, c - 1),
    holder = string.sub(v, c + 1),
  })
end
return answered(answers)`;

export const ACQUIRE: ScriptPair = {
  many: script(DECIMAL, TAKE_FREE, TELL, LOCK_PRELUDE, ACQUIRE_ONE),
  lone: script(TAKE_ONE, DECIMAL, TELL, LOCK_PRELUDE, ACQUIRE_ONE),
};
