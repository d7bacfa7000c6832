/**
 * Write, for one entry or many.
 *
 * Flow: the last write was this very one → its version again; a larger token of the same lock wrote last → fenced; the
 * expectation does not hold → conflict; else written, indexed, and told to watchers.
 * KEYS: index that lists the entries, its ends, then one entry per write.
 * ARGV: how long a gone entry is remembered in ms, channel prefix; then nine per write: full key, what to do (`p` put,
 *   `d` delete), value, what to expect (`a` absent, `v` version, `*` whatever), version, write id, ttl ms (`k` keep,
 *   `n` none), lock of the fence or '', its token (19 digits).
 * Answers (wrapped where a message was refused: see `TELL`), one per write: {'w', version} · {'c', version or ''} · {'f', token}.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { STATE_PRELUDE } from './state-record.lua.js';
import { TELL } from './tell.lua.js';

const WRITE_ONE = `
local function ends_of(was, ttl)
  if ttl == 'n' then return 0 end
  if ttl == 'k' then return was.present and was.ends or 0 end
  return now + tonumber(ttl) * 1000
end

-- A demoted master compares with an old copy. What changes nothing is refused there like every write.
local function only_on_a_master(index, answer)
  redis.call('PERSIST', index)
  return answer
end

local function write(entry, index, ends_of_index, a, keep, channel)
  local was = load(entry)
  if was.write == a.write then return { 'w', was.version } end
  if a.lock ~= '' and was.lock == a.lock and was.token > a.token then return only_on_a_master(index, { 'f', was.token }) end
  if a.expect == 'a' and was.present then return only_on_a_master(index, { 'c', was.version }) end
  if a.expect == 'v' and not (was.present and was.version == a.version) then
    return only_on_a_master(index, { 'c', was.present and was.version or '' })
  end
  local version = stamp
  if was.version and after(was.version) > version then version = after(was.version) end
  redis.call('HSET', entry, 'n', version, 'w', a.write)
  if a.lock ~= '' then redis.call('HSET', entry, 'f', a.lock, 't', a.token) end
  local px
  if a.act == 'd' then
    redis.call('HSET', entry, 'e', '0')
    redis.call('HDEL', entry, 'v')
    redis.call('ZREM', index, a.key)
    redis.call('ZREM', ends_of_index, a.key)
    px = keep
  else
    local ends = ends_of(was, a.ttl)
    redis.call('HSET', entry, 'v', a.value, 'e', digits(ends, 1))
    redis.call('ZADD', index, 0, a.key)
    if ends > 0 then redis.call('ZADD', ends_of_index, digits(ends, 1), a.key) else redis.call('ZREM', ends_of_index, a.key) end
    px = ends > 0 and math.ceil((ends - now) / 1000) + keep
  end
  if px then redis.call('PEXPIRE', entry, px) else redis.call('PERSIST', entry) end
  tell(channel .. string.match(a.key, '^[^/]*'), a.key)
  return { 'w', version }
end

local function arguments(i)
  local v = 2 + (i - 1) * 9
  return {
    key = ARGV[v + 1],
    act = ARGV[v + 2],
    value = ARGV[v + 3],
    expect = ARGV[v + 4],
    version = ARGV[v + 5],
    write = ARGV[v + 6],
    ttl = ARGV[v + 7],
    lock = ARGV[v + 8],
    token = ARGV[v + 9],
  }
end

local answers = {}
for i = 1, #KEYS - 2 do
  answers[i] = write(KEYS[i + 2], KEYS[1], KEYS[2], arguments(i), tonumber(ARGV[1]), ARGV[2])
end
-- Behind the writes: once a script has written, a server that is out of memory refuses it nothing more.
tidy(KEYS[1], KEYS[2], #answers)
return answered(answers)`;

export const WRITE = script(DECIMAL, TELL, STATE_PRELUDE, WRITE_ONE);
