/**
 * What every lock script begins with: the layout of a lock and of its queue, and the few steps that all share.
 *
 * A lock is a record, and where somebody waits a queue (a sorted set of claims in the order in which Redis saw them)
 * and the tickets (a hash by claim), all of one hash tag; their names differ in one letter. While nobody waits the
 * record ends by its own native expiry, and the queue is never touched: that is the fast path. Once somebody waits, the
 * record says when the lease ends and outlives it, so that whoever meets an expired lease finds the queue and hands the
 * lock on. A lock that was given back is gone without a trace: the last token of all locks of a tag stands in one key,
 * so tokens grow even when the server's clock steps back. Claims that were given up stand beside it until their
 * tombstones end, and while there are some the key of the last token says so: whoever reads that key knows both.
 *
 * Record: mode (`h` held, `q` held and somebody waits) · end of the lease in µs (16 digits, of meaning in `q` only) ·
 * token (19 digits) · session · '|' · claim · '|' · holder as JSON. What proves a grant, token to claim with a '|' behind
 * it, stands in one piece.
 * Ticket: end of the ticket in µs (16) · ticket ttl in ms (15) · floor (19) · session · '|' · holder as JSON.
 * Last token: 19 digits · where claims were given up, the end of the last of their tombstones in µs (19 digits).
 * All times are the server's own.
 *
 * KEYS of every script: the last token. In a cluster the records, the queues and the tickets follow, so that a member that
 * hands a slot over refuses what it has in part only. The scripts make the names from the operations.
 * ARGV of a script for many: how many characters of the first key stand behind 'guard:'; then all operations in one
 * piece, field by field, each field with a NUL behind it, which no name holds. One long argument costs client and server
 * a fraction of what many short ones do.
 * Where a message was refused, the answer is wrapped: see `TELL`.
 * A script for a lone operation has the record as its second key, and the other fields as its arguments: it is half of
 * what is waited for when a lock is free, so it takes nothing apart and calls for nothing that it does not need.
 */

/** What takes many operations apart. It stands before everything else. */
export const FIELDS = `
local start = string.sub(KEYS[1], 1, -1 - ARGV[1])
local fields, at = ARGV[2], 1

local function field()
  local ends = string.find(fields, '\\0', at, true)
  local value = string.sub(fields, at, ends - 1)
  at = ends + 1
  return value
end
`;

/** What only those need who do not take the fast path. */
export const LOCK_PRELUDE = `
local graves = string.sub(KEYS[1], 1, -6) .. 'given-up'

local function parse(v)
  local s = string.find(v, '|', 37, true)
  local c = string.find(v, '|', s + 1, true)
  return {
    mode = string.sub(v, 1, 1),
    ends = tonumber(string.sub(v, 2, 17)),
    token = string.sub(v, 18, 36),
    session = string.sub(v, 37, s - 1),
    claim = string.sub(v, s + 1, c - 1),
    holder = string.sub(v, c + 1),
  }
end

-- The names of queue and tickets, by that of the record. A tag is the first thing in braces.
local function beside(key)
  local brace = string.find(key, '}:l:', 1, true)
  local before, behind = string.sub(key, 1, brace + 1), string.sub(key, brace + 3)
  return before .. 'q' .. behind, before .. 't' .. behind
end

-- A demoted master answers from an old copy. What changes nothing is refused there like every write.
local function only_on_a_master()
  redis.call('PERSIST', KEYS[1])
end

local function read(key)
  local v = redis.call('GET', key)
  return v and parse(v), v
end

local function live(record)
  return record and (record.mode == 'h' or record.ends > now)
end

local function write(key, r, px)
  local head = r.mode .. digits(r.ends, 16) .. r.token
  redis.call('SET', key, head .. r.session .. '|' .. r.claim .. '|' .. r.holder, 'PX', px)
end

-- A token that was raised: nothing below it is given any more.
local function remember(token)
  local last = redis.call('GET', KEYS[1]) or ''
  if string.sub(last, 1, 19) < token then redis.call('SET', KEYS[1], token .. string.sub(last, 20)) end
end

-- A new token, larger than every one before it. It is remembered before anything is granted under it.
local function mint(record, floor)
  local last = redis.call('GET', KEYS[1])
  local token = next_token(last)
  if record and record.token >= token then token = after(record.token) end
  if floor > token then token = floor end
  redis.call('SET', KEYS[1], token .. string.sub(last or '', 20))
  return token
end

local function ticket(v)
  local s = string.find(v, '|', 51, true)
  return {
    ends = tonumber(string.sub(v, 1, 16)),
    ttl = tonumber(string.sub(v, 17, 31)),
    floor = string.sub(v, 32, 50),
    session = string.sub(v, 51, s - 1),
    holder = string.sub(v, s + 1),
  }
end

local function drop(queue, tickets, claim)
  redis.call('ZREM', queue, claim)
  return redis.call('HDEL', tickets, claim)
end

-- The first live ticket; dead ones before it are removed.
local function first(queue, tickets)
  while true do
    local claim = redis.call('ZRANGE', queue, 0, 0)[1]
    if not claim then return nil end
    local v = redis.call('HGET', tickets, claim)
    local t = v and ticket(v)
    if t and t.ends > now then return claim, t end
    drop(queue, tickets, claim)
  end
end

-- Keeps record and queue at least as long as a lease or ticket that ends at 'ends'.
local function outlive(key, queue, tickets, ends)
  local px = math.ceil((ends - now) / 1000) + 1000
  for _, k in ipairs({ key, queue, tickets }) do
    if redis.call('PTTL', k) < px then redis.call('PEXPIRE', k, px) end
  end
end

-- Makes a live ticket the holder, for the ticket's own ttl, and tells its process. The ticket goes first: a server whose
-- memory is used up refuses what may need some, until a script has written something that needs none.
local function hand_over(key, queue, tickets, record, claim, t)
  drop(queue, tickets, claim)
  local ends = now + t.ttl * 1000
  local r = { token = mint(record, t.floor), mode = 'q', ends = ends }
  r.session, r.claim, r.holder = t.session, claim, t.holder
  local px = redis.call('PTTL', key)
  write(key, r, math.max(px, t.ttl + 1000))
  tell('guard:notices:' .. t.session, 'g|' .. r.token .. '|' .. claim .. '|' .. key)
  return r
end

-- Gives a lock on: to the first live ticket, or to nobody.
local function let_go(key, queue, tickets, record)
  local claim, t
  if record.mode == 'q' then claim, t = first(queue, tickets) end
  if claim then return hand_over(key, queue, tickets, record, claim, t) end
  if record.mode == 'q' then redis.call('DEL', key, queue, tickets) else redis.call('DEL', key) end
  return nil
end

local function ms_left(key, record)
  if record.mode == 'h' then return redis.call('PTTL', key) end
  return math.ceil((record.ends - now) / 1000)
end
`;
