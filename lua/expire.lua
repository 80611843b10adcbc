--[[
expire: set the remaining life of a conversation until its next append.

KEYS
  1  turns    list  the head, then one element per turn or piece of one, oldest first
  2  summary  text  of the oldest turns

ARGV
  1  ttl_ms  int   >= 0  time to live; 0 keeps forever

RETURNS int  1 set; 0 there is no such conversation
]]
local turns = KEYS[1]
local summary = KEYS[2]
local ttl_ms = tonumber(ARGV[1])

if redis.call("EXISTS", turns) == 0 then
  return 0
end
if ttl_ms > 0 then
  redis.call("PEXPIRE", turns, ttl_ms)
  redis.call("PEXPIRE", summary, ttl_ms)
else
  redis.call("PERSIST", turns)
  redis.call("PERSIST", summary)
end
return 1
