--[[
facts_forget: refuse what is being drawn from a conversation of an owner just now.

KEYS
  1  generation  text  what was begun and erased of the owner
  2  forgotten   zset  the conversations whose facts were forgotten of late

ARGV
  1  conversation  text  a digest

RETURNS int  the number of the newest that is refused from now on

ERRORS
  ERASED closed  the owner is being erased just now; nothing was written
  FORMAT         the key was written by a later version; nothing was written
]]
--# include owner
local generation = KEYS[1]
local forgotten = KEYS[2]
local conversation = ARGV[1]

local owner, refusal = read_generation(generation)
if not refusal and owner.closed_until > owner.now then
  refusal = "ERASED closed"
end
if refusal then
  return redis.error_reply(refusal)
end
local number = next_number(owner)
write_generation(generation, owner)
redis.call("ZADD", forgotten, string.format("%d", number), conversation)
redis.call("ZREMRANGEBYSCORE", forgotten, "-inf", string.format("%d", number - LONGEST_US))
redis.call("PEXPIRE", forgotten, REMEMBERED_MS)
return number
