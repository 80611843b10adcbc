--[[
facts_forget: refuse what is being drawn from a conversation, or from turns, just now.

KEYS
  1  generation  text  what was begun and erased of the owner
  2  forgotten   zset  the conversations and exchanges that were forgotten of late

ARGV
  1  member  text*  digests of conversations, or of what exchanges are of

RETURNS int  the number of the newest that is refused from now on

ERRORS
  ERASED closed  the owner is being erased just now; nothing was written
  FORMAT         the key was written by a later version; nothing was written
]]
--# include owner
--# include begun
--# include allowed
local generation = KEYS[1]
local forgotten = KEYS[2]

local owner, refusal = read_open(generation)
refusal = refusal or forbidden(generation, "UNLINK", "SET")
  or forbidden(forgotten, "ZADD", "ZREMRANGEBYSCORE", "PEXPIRE")
if refusal then
  return redis.error_reply(refusal)
end
local number = next_number(owner)
write_generation(generation, owner, true)
for _, member in ipairs(ARGV) do
  redis.call("ZADD", forgotten, string.format("%d", number), member)
end
redis.call("ZREMRANGEBYSCORE", forgotten, "-inf", string.format("%d", number - LONGEST_US))
redis.call("PEXPIRE", forgotten, REMEMBERED_MS)
return number
