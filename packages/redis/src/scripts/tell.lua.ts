/**
 * Messages of scripts. A user who may not publish has done everything else by then, so a message that is refused fails
 * nothing: the answer says it beside what the script answers anyway, as {'unheard', why, answers}.
 */

/** What stands first in the answer of a script whose message was refused. */
export const UNHEARD = 'unheard';

/** What scripts with messages begin with, and how they answer. */
export const TELL = `
local unheard

local function tell(channel, message)
  local told = redis.pcall('PUBLISH', channel, message)
  if type(told) == 'table' and told.err then unheard = told.err end
end

local function answered(answers)
  if unheard then return { 'unheard', unheard, answers } end
  return answers
end
`;
