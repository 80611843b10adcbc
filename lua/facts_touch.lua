--[[
facts_touch: note that facts were found.

KEYS
  1  facts  hash  the facts by their ids
  2  used   zset  when facts were last found
  3  uses   hash  how often

ARGV
  1  time_ms  int    when
  2  id       text*  of the facts; those that are gone are left out

RETURNS int  facts noted
]]
--# include allowed
local facts = KEYS[1]
local used = KEYS[2]
local uses = KEYS[3]
local time_ms = tonumber(ARGV[1])
local first_of_id = 2

local refusal = forbidden(used, "ZADD", "PEXPIRE") or forbidden(uses, "HINCRBY", "PEXPIRE")
if refusal then
  return redis.error_reply(refusal)
end
local noted = 0
for at = first_of_id, #ARGV do
  if redis.call("HEXISTS", facts, ARGV[at]) == 1 then
    redis.call("ZADD", used, "GT", string.format("%d", time_ms), ARGV[at])
    redis.call("HINCRBY", uses, ARGV[at], 1)
    noted = noted + 1
  end
end
local left_ms = redis.call("PTTL", facts)
for _, key in ipairs(noted > 0 and left_ms >= 0 and { used, uses } or {}) do
  redis.call("PEXPIRE", key, left_ms)
end
return noted
