-- Lets what is stored of a conversation live so long from now on; 0 keeps it for ever.
local function set_life(turns, summary, ttl_ms)
  if ttl_ms > 0 then
    redis.call("PEXPIRE", turns, ttl_ms)
    redis.call("PEXPIRE", summary, ttl_ms)
  else
    redis.call("PERSIST", turns)
    redis.call("PERSIST", summary)
  end
end
