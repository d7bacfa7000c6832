/**
 * The server's time in µs, and numbers as decimal texts of a fixed width: Lua numbers are exact up to 2^53 only, and
 * tokens and versions have to be exact and to sort like numbers. Every script begins with this.
 */
export const DECIMAL = `
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function digits(n, width)
  return string.format('%0' .. width .. '.0f', n)
end

-- The time as 19 digits. Put together, because a format costs as much as a command.
local stamp = '000' .. clock[1] .. string.sub('00000' .. clock[2], -6)

-- The next larger of a number of 19 digits.
local function after(number)
  for i = 19, 1, -1 do
    local digit = string.byte(number, i) - 48
    if digit < 9 then return string.sub(number, 1, i - 1) .. (digit + 1) .. string.rep('0', 19 - i) end
  end
end

-- What is given next, where this was given last (or nothing).
local function next_token(last)
  if last and last >= stamp then return after(last) end
  return stamp
end
`;
