--[[
facts_renew: let search documents of an owner live for longer, as the owner's facts do.

KEYS
  1  postings  hash   the facts by their terms; the fields with # are no terms
  2  document  text*  of facts

ARGV
  1  ttl_ms  int  >= 0  how long from now on; 0 keeps them for ever
  2  is_all  int  0 or 1  1 where no document is left that was not renewed

RETURNS int  documents renewed
]]
--# include allowed
local postings = KEYS[1]
local first_of_document = 2
local ttl_ms = tonumber(ARGV[1])
local is_all = ARGV[2] == "1"

local refusal = is_all and forbidden(postings, "EXISTS", ttl_ms > 0 and "HSET" or "HDEL")
if refusal then
  return redis.error_reply(refusal)
end
local renewed = 0
for at = first_of_document, #KEYS do
  if ttl_ms > 0 then
    renewed = renewed + redis.call("PEXPIRE", KEYS[at], ttl_ms)
  else
    renewed = renewed + redis.call("PERSIST", KEYS[at])
  end
end
-- The key is not made anew where the owner was erased meanwhile.
if is_all and redis.call("EXISTS", postings) == 1 then
  local time = redis.call("TIME")
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if ttl_ms > 0 then
    redis.call("HSET", postings, "#e", string.format("%d", now + ttl_ms))
  else
    redis.call("HDEL", postings, "#e")
  end
end
return renewed
