--[[
seed: fill an empty conversation with elements of another one.

KEYS
  1  turns    list   the head, then one element per turn or piece of one, oldest first
  2  summary  text   of an earlier conversation under this id; goes

ARGV
  1  ttl_ms   int    >= 0  time to live; 0 keeps forever
  2  head     bytes        the head of the new list
  3  first    bytes        its oldest element, followed by any number of further ones

RETURNS int  1 filled; 0 it holds just these elements already

ERRORS
  CONFLICT <revision>  it holds something else; nothing was written
  CORRUPT, FORMAT      what is stored cannot be read; nothing was written
]]
--# include head
--# include allowed
local turns = KEYS[1]
local summary = KEYS[2]
local ttl_ms = tonumber(ARGV[1])
local first_of_list = 2 -- ARGV from here on is the list, head first

local held = redis.call("LLEN", turns)
if held > 0 then
  local head, refusal = read_head(turns)
  if refusal then
    return redis.error_reply(refusal)
  end
  if held == #ARGV - 1 and redis.call("LINDEX", turns, 0) == ARGV[first_of_list] then
    return 0
  end
  return redis.error_reply("CONFLICT " .. revision(head))
end
local refusal = forbidden(turns, "DEL", "PEXPIRE")
if refusal then
  return redis.error_reply(refusal)
end
-- In slices, as Lua's unpack stops at some 8,000 values.
for start = first_of_list, #ARGV, 1000 do
  redis.call("RPUSH", turns, unpack(ARGV, start, math.min(start + 999, #ARGV)))
end
redis.call("DEL", summary)
if ttl_ms > 0 then
  redis.call("PEXPIRE", turns, ttl_ms)
end
return 1
