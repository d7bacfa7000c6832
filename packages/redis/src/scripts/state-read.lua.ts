/**
 * Read, for one entry or many, and pages of the index.
 *
 * READ: KEYS: one per entry, then index and its ends, not in a cluster: while a slot moves it refuses a script that names a
 *   key which is not there, and ends need not be. ARGV: how many entries. Answers, one per entry: {} nothing · {value,
 *   version, ms left or -1}.
 * PAGE: KEYS: index. ARGV: prefix as a lower bound of ZRANGEBYLEX, upper bound, limit. Answers full keys in the order
 *   of their bytes.
 * FORGET: KEYS: index, its ends, entry. ARGV: full key. Takes a key whose entry is gone out of both, in one step.
 * NOW: answers the server's time in µs.
 */
import { DECIMAL } from './decimal.lua.js';
import { script } from './script.js';
import { STATE_PRELUDE } from './state-record.lua.js';

const READ_ONE = `
local answers = {}
for i = 1, tonumber(ARGV[1]) do
  local e = load(KEYS[i])
  if e.present then
    answers[i] = { e.value, e.version, e.ends == 0 and -1 or math.ceil((e.ends - now) / 1000) }
  else
    answers[i] = {}
  end
end
if #KEYS > #answers then tidy(KEYS[#KEYS - 1], KEYS[#KEYS], #answers) end
return answers`;

export const READ = script(DECIMAL, STATE_PRELUDE, READ_ONE);

export const PAGE = script(
  `return redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])`,
);

export const FORGET = script(
  DECIMAL,
  STATE_PRELUDE,
  `
if load(KEYS[3]).present then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])`,
);

export const NOW = script(DECIMAL, `return string.format('%.0f', now)`);
