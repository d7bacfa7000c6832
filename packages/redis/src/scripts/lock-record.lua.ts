/**
 * What every lock script begins with: the layout of a lock and of its queue, and the few steps that all share.
 *
 * A lock is three keys of one hash tag: the record, the queue (a sorted set of claims in the order in which Redis saw
 * them) and the tickets (a hash by claim). While nobody waits the record ends by its own native expiry, and the queue
 * is never touched: that is the fast path. Once somebody waits, the record says when the lease ends and outlives it,
 * so that whoever meets an expired lease finds the queue and hands the lock on. A lock that was given back leaves its
 * token behind for a while, so that tokens grow even when the server's clock steps back.
 *
 * Record: token (19 digits) · mode (`h` held, `q` held and somebody waits, `f` free) · end of the lease in µs
 * (16 digits, of meaning in `q` only) · session · '|' · claim · '|' · holder as JSON.
 * Ticket: end of the ticket in µs (16) · ticket ttl in ms (15) · floor (19) · session · '|' · holder as JSON.
 * All times are the server's own.
 */
export const LOCK_PRELUDE = `
local function parse(v)
  local s = string.find(v, '|', 37, true)
  local c = string.find(v, '|', s + 1, true)
  return {
    token = string.sub(v, 1, 19),
    mode = string.sub(v, 20, 20),
    ends = tonumber(string.sub(v, 21, 36)),
    session = string.sub(v, 37, s - 1),
    claim = string.sub(v, s + 1, c - 1),
    holder = string.sub(v, c + 1),
  }
end

local function read(key)
  local v = redis.call('GET', key)
  return v and parse(v)
end

local function live(record)
  return record and (record.mode == 'h' or (record.mode == 'q' and record.ends > now))
end

local function write(key, r, px)
  local head = r.token .. r.mode .. digits(r.ends, 16)
  redis.call('SET', key, head .. r.session .. '|' .. r.claim .. '|' .. r.holder, 'PX', px)
end

local function mint(record, floor)
  local token = stamp
  if record and after(record.token) > token then token = after(record.token) end
  return floor > token and floor or token
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

-- Makes a live ticket the holder, for the ticket's own ttl, and tells its process.
local function hand_over(key, queue, tickets, record, claim, t, channel)
  drop(queue, tickets, claim)
  local ends = now + t.ttl * 1000
  local r = { token = mint(record, t.floor), mode = 'q', ends = ends }
  r.session, r.claim, r.holder = t.session, claim, t.holder
  local px = redis.call('PTTL', key)
  write(key, r, math.max(px, t.ttl + 1000))
  redis.call('PUBLISH', channel .. t.session, 'g|' .. r.token .. '|' .. claim .. '|' .. key)
  return r
end

-- Gives a lock on: to the first live ticket, or to nobody.
local function let_go(key, queue, tickets, record, keep, channel)
  local claim, t
  if record.mode == 'q' then claim, t = first(queue, tickets) end
  if claim then return hand_over(key, queue, tickets, record, claim, t, channel) end
  if record.mode == 'q' then redis.call('DEL', queue, tickets) end
  -- A server that is out of memory refuses to remember the token, and must not keep the lock for that.
  local free = record.token .. 'f' .. digits(0, 16) .. '||'
  if redis.pcall('SET', key, free, 'PX', keep).err then redis.call('DEL', key) end
  return nil
end

local function ms_left(key, record)
  if record.mode == 'h' then return redis.call('PTTL', key) end
  return math.ceil((record.ends - now) / 1000)
end
`;
